/* A plugin of qemu's user-mode emulator, for scripts/count_instructions.py: how many instructions pass from one call of
   a function to the next. Argument: part of the function's name as the linker knows it. Prints the calls and the fewest
   instructions between two of them. Debian's qemu-user loads plugins but comes without their header, so the few
   functions of the interface (version 1) that are used are declared here. For programs of one thread: the count is not
   atomic. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t PluginId;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum InlineOperation { kAdd64 };
enum RegisterUse { kNoRegisters };

void qemu_plugin_register_vcpu_tb_trans_cb(PluginId id, void (*callback)(PluginId, struct qemu_plugin_tb*));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* block);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb* block, size_t index);
const char* qemu_plugin_insn_symbol(const struct qemu_plugin_insn* instruction);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn* instruction);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* block, enum InlineOperation operation, void* number,
                                              uint64_t addend);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn* instruction, void (*callback)(unsigned, void*),
                                            enum RegisterUse use, void* data);
void qemu_plugin_register_atexit_cb(PluginId id, void (*callback)(PluginId, void*), void* data);
void qemu_plugin_outs(const char* text);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static char function[256];
static uint64_t entry; /* of the function; what is translated of it first */
static uint64_t executed;
static uint64_t calls;
static uint64_t at_last_call;
static uint64_t fewest = UINT64_MAX;

static void note_call(unsigned processor, void* data) {
  (void)processor;
  (void)data;
  const uint64_t passed = executed - at_last_call;
  if (calls > 0 && passed < fewest) fewest = passed;
  ++calls;
  at_last_call = executed;
}

static void count_block(PluginId id, struct qemu_plugin_tb* block) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_inline(block, kAdd64, &executed, qemu_plugin_tb_n_insns(block));
  struct qemu_plugin_insn* first = qemu_plugin_tb_get_insn(block, 0);
  const uint64_t address = qemu_plugin_insn_vaddr(first);
  const char* symbol = qemu_plugin_insn_symbol(first);
  if (entry == 0 && symbol != NULL && strstr(symbol, function) != NULL) entry = address;
  if (entry == address) qemu_plugin_register_vcpu_insn_exec_cb(first, note_call, kNoRegisters, NULL);
}

static void print_count(PluginId id, void* data) {
  (void)id;
  (void)data;
  char text[128];
  snprintf(text, sizeof text, "calls: %" PRIu64 " instructions: %" PRIu64 "\n", calls, calls > 1 ? fewest : 0);
  qemu_plugin_outs(text);
}

__attribute__((visibility("default"))) int qemu_plugin_install(PluginId id, const void* info, int argc, char** argv) {
  (void)info;
  if (argc != 1) {
    fprintf(stderr, "instruction_counter: one argument is expected, function=NAME\n");
    return -1;
  }
  const char* value = strchr(argv[0], '=');
  snprintf(function, sizeof function, "%s", value != NULL ? value + 1 : argv[0]);
  qemu_plugin_register_vcpu_tb_trans_cb(id, count_block);
  qemu_plugin_register_atexit_cb(id, print_count, NULL);
  return 0;
}
