// bantam completion: shell completion, derived from the commands and options that the program really has.
#include <fmt/format.h>

#include <memory>
#include <set>

#include "cli.h"

namespace bantam::cli {
namespace {

/// Of a command, and the names and options of the commands within it.
std::string option_names(const CLI::App& command) {
  std::string names;
  for (const CLI::App* inner : command.get_subcommands({}))
    names += fmt::format(" {} {}", inner->get_name(), option_names(*inner));
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names += " --" + name;
    for (const std::string& name : option->get_snames()) names += " -" + name;
  }
  return names.empty() ? names : names.substr(1);
}

void print_bash(const CLI::App& app) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : app.get_subcommands({})) {
    commands += (commands.empty() ? "" : " ") + command->get_name();
    cases += fmt::format("    {}) options=\"{}\" ;;\n", command->get_name(), option_names(*command));
  }
  fmt::print(
      "_bantam() {{\n"
      "  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" options=\"\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}  esac\n"
      "  case \"$word\" in\n"
      "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
      "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
      "  esac\n"
      "}}\n"
      "complete -o filenames -F _bantam bantam\n",
      commands, cases);
}

/// Of a command and of the commands within it, each once.
std::set<std::string> long_options(const CLI::App& command) {
  std::set<std::string> names;
  for (const CLI::App* inner : command.get_subcommands({})) names.merge(long_options(*inner));
  for (const CLI::Option* option : command.get_options())
    names.insert(option->get_lnames().begin(), option->get_lnames().end());
  return names;
}

void print_fish(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands({})) {
    fmt::print("complete -c bantam -n __fish_use_subcommand -a {} -d '{}'\n", command->get_name(),
               command->get_description());
    for (const CLI::App* inner : command->get_subcommands({}))
      fmt::print("complete -c bantam -n '__fish_seen_subcommand_from {}' -a {} -d '{}'\n", command->get_name(),
                 inner->get_name(), inner->get_description());
    for (const std::string& name : long_options(*command))
      fmt::print("complete -c bantam -n '__fish_seen_subcommand_from {}' -l {}\n", command->get_name(), name);
  }
}

}  // namespace

void add_completion(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("completion", "print a completion script: eval \"$(bantam completion bash)\"");
  auto shell = std::make_shared<std::string>("bash");
  command->add_option("shell", *shell, "bash, zsh or fish")->check(CLI::IsMember({"bash", "zsh", "fish"}));
  const CLI::App* root = &app;
  command->callback([=] {
    if (*shell == "zsh") fmt::print("autoload -U +X bashcompinit && bashcompinit\n");
    if (*shell == "fish") {
      print_fish(*root);
    } else {
      print_bash(*root);
    }
    *exit_code = kExitOk;
  });
}

}  // namespace bantam::cli
