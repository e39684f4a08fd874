#include "partition/finding.h"

#include <fmt/format.h>

#include <utility>

namespace bantam::partition {

const char* severity_name(Severity severity) noexcept {
  switch (severity) {
    case Severity::kNote: return "note";
    case Severity::kWarning: return "warning";
    case Severity::kError: break;
  }
  return "error";
}

std::string describe(const Finding& finding) { return finding.object + ": " + finding.message; }

void Findings::add(Finding finding) {
  ++counts_[static_cast<std::size_t>(finding.severity)];
  if (list_.size() == kMaxFindings) {
    ++dropped_;
    return;
  }
  list_.push_back(std::move(finding));
}

void Findings::error(std::string object, std::int64_t offset, std::string message, std::string remedy) {
  add({Severity::kError, std::move(object), std::move(message), std::move(remedy), offset});
}

void Findings::warning(std::string object, std::int64_t offset, std::string message, std::string remedy) {
  add({Severity::kWarning, std::move(object), std::move(message), std::move(remedy), offset});
}

void Findings::note(std::string object, std::int64_t offset, std::string message, std::string remedy) {
  add({Severity::kNote, std::move(object), std::move(message), std::move(remedy), offset});
}

Error Findings::to_error(StatusCode code) const {
  Error error{code, {}, {}};
  for (const Finding& finding : list_) {
    if (finding.severity != Severity::kError) continue;
    error.message += (error.message.empty() ? "" : "\n") + describe(finding);
    if (error.remedy.empty()) error.remedy = finding.remedy;
  }
  if (dropped_ != 0) error.message += fmt::format("\nand {} more findings", dropped_);
  return error;
}

std::string quote(std::string_view text, std::size_t limit) {
  std::string shown = "'";
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  return shown + (text.size() > limit ? "...'" : "'");
}

}  // namespace bantam::partition
