// The firmware: opens the package in flash, places its fleet in one static array, and replays a recording that a host
// made (`bantam run --record`): every invoke gets the recorded inputs, in the recorded order, and its outputs go into a
// recording of the device's own. What each step costs is printed, one fact a line, for scripts/firmware.py.
//
// Files are the host's, by semihosting: recording.host is read, recording.device is written.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bantam/runtime.h"
#include "core.h"
#include "feed/recording_format.h"
#include "firmware.h"
#include "semihosting.h"

extern "C" {
extern const std::byte package_begin[];
extern const std::byte package_end[];
}

namespace {

using bantam::Fleet;
using bantam::Package;
using bantam::Session;
using bantam::Status;
using bantam::StatusCode;
using bantam::feed::RecordHead;
using bantam::feed::RecordingHead;
using bantam::feed::RecordKind;
using semihosting::print_all;

[[gnu::section(".arena")]] alignas(64) std::byte arena[BANTAM_ARENA_BYTES];

/// What a piece of work took.
struct Cost {
  std::int64_t ticks = 0;
  std::size_t stack = 0;
};

template <typename Work>
Cost measure(Work&& work) {
  core::paint_stack();
  const std::uint64_t start = core::ticks();
  work();
  return {static_cast<std::int64_t>(core::ticks() - start), core::stack_high_water()};
}

void print_cost(const Cost& cost) {
  print_all(" instructions ", core::instructions(cost.ticks), " stack ", std::uint64_t{cost.stack});
}

int report(const char* what, const Status& status) {
  char text[160];
  bantam::format_status(status, text, sizeof text);
  print_all("error ", what, ": ", text, "\n");
  return 1;
}

/// Adds up what kernels take, so that the rest of an invoke is the executor's own.
class KernelClock {
 public:
  KernelClock() {
    observer_.context = this;
    observer_.before = [](void* self, const Session&, std::size_t) {
      static_cast<KernelClock*>(self)->start();
      return bantam::StepDecision::kRun;
    };
    observer_.after = [](void* self, const Session&, std::size_t) {
      static_cast<KernelClock*>(self)->stop();
      return bantam::ok_status();
    };
  }

  const bantam::Observer& observer() const { return observer_; }
  std::int64_t kernel_ticks() const { return total_; }
  void clear() { total_ = 0; }

 private:
  void start() { start_ = core::ticks(); }
  void stop() { total_ += static_cast<std::int64_t>(core::ticks() - start_); }

  bantam::Observer observer_;
  std::uint64_t start_ = 0;
  std::int64_t total_ = 0;
};

/// The cost of watching a step, which is not the executor's: inside and outside of what the clock takes for the kernel.
struct WatchingCost {
  std::int64_t inside = 0;
  std::int64_t outside = 0;
};

/// In ticks per kRounds steps.
constexpr std::int64_t kRounds = 1024;

WatchingCost measure_watching(KernelClock& clock, const Session& session) {
  clock.clear();
  const std::uint64_t start = core::ticks();
  for (std::int64_t i = 0; i < kRounds; ++i) {
    static_cast<void>(clock.observer().before(clock.observer().context, session, 0));
    static_cast<void>(clock.observer().after(clock.observer().context, session, 0));
  }
  const auto total = static_cast<std::int64_t>(core::ticks() - start);
  return {clock.kernel_ticks(), total - clock.kernel_ticks()};
}

class Replay {
 public:
  Replay(Fleet& fleet, semihosting::File in, semihosting::File out)
      : fleet_(fleet), in_(in), out_(out), watching_(measure_watching(clock_, *fleet.session(0))) {}

  int run() {
    RecordingHead head;
    if (!in_.read(&head, sizeof head) || !std::ranges::equal(head.magic, bantam::feed::kRecordingMagic) ||
        head.sessions != fleet_.size())
      return bad("recording.host is no recording of this fleet");
    if (!out_.write(&head, sizeof head)) return bad("cannot write recording.device");
    while (!in_.at_end()) {
      RecordHead record;
      if (!in_.read(&record, sizeof record) || record.session >= fleet_.size())
        return bad("recording.host is truncated or damaged");
      if (const int code = replay(record); code != 0) return code;
    }
    return 0;
  }

 private:
  static int bad(const char* message) { return report("recording", failure(StatusCode::kIo, message)); }

  int replay(const RecordHead& record) {
    Session& session = *fleet_.session(record.session);
    switch (record.kind) {
      case RecordKind::kInput:
        if (record.port >= session.input_count() || record.bytes != session.input_info(record.port).bytes)
          return bad("the recording's inputs are not those of the fleet");
        return in_.read(session.input(record.port).data, record.bytes) ? 0 : bad("recording.host is truncated");
      case RecordKind::kInvoke: return invoke(record.session, session, record.port != 0);
      case RecordKind::kOutput: return in_.skip(record.bytes) ? 0 : bad("recording.host is truncated");
    }
    return bad("recording.host is damaged");
  }

  /// Every session is measured undisturbed the first time, then with the clock that tells kernels and executor apart.
  int invoke(std::uint32_t index, Session& session, bool watched) {
    clock_.clear();
    session.set_observer(watched ? &clock_.observer() : nullptr);
    Status status;
    const Cost cost = measure([&] { status = session.invoke(); });
    session.set_observer(nullptr);
    if (!status.ok()) return report("invoke", status);
    const auto steps = static_cast<std::int64_t>(session.step_count());
    print_all("invoke ", index, " steps ", steps);
    if (watched) {
      const std::int64_t own = cost.ticks - clock_.kernel_ticks() - watching_.outside * steps / kRounds;
      print_all(" executor ", core::instructions(own), "\n");
    } else {
      print_cost(cost);
      print_all("\n");
    }
    return write_outputs(index, session);
  }

  int write_outputs(std::uint32_t index, const Session& session) {
    for (std::uint32_t i = 0; i < session.output_count(); ++i) {
      const bantam::PortInfo info = session.output_info(i);
      const RecordHead record{RecordKind::kOutput, index, i, static_cast<std::uint32_t>(info.desc->type),
                              static_cast<std::uint32_t>(info.bytes)};
      if (!out_.write(&record, sizeof record) || !out_.write(session.output(i).data, record.bytes))
        return bad("cannot write recording.device");
    }
    return 0;
  }

  Fleet& fleet_;
  semihosting::File in_;
  semihosting::File out_;
  KernelClock clock_;
  WatchingCost watching_;
};

}  // namespace

int run_firmware() noexcept {
  core::start_clock();
  print_all("stack ", std::uint64_t{core::stack_size()}, "\n");

  Package package;
  Status status;
  const std::span<const std::byte> bytes(package_begin, package_end);
  const Cost opening = measure([&] { status = Package::open(bytes, &package); });
  if (!status.ok()) return report("open", status);
  print_all("open package ", std::uint64_t{bytes.size()}, " weights ", package.weights_bytes());
  print_cost(opening);

  Fleet* fleet = nullptr;
  const Cost placing = measure([&] { status = Fleet::place(package, arena, &fleet); });
  if (!status.ok()) return report("place", status);
  print_all("\nplace arena ", package.requirements().arena_bytes);
  print_cost(placing);
  print_all("\n");

  auto in = semihosting::File::for_reading("recording.host");
  auto out = semihosting::File::for_writing("recording.device");
  if (!in.valid() || !out.valid()) return report("recording", failure(StatusCode::kIo, "a recording cannot be opened"));
  const int code = Replay(*fleet, in, out).run();
  if (code == 0) print_all("end\n");
  return code;
}
