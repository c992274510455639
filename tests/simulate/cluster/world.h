// Collectors, agents, and the way between them and a bucket, under a scheduler that decides by a
// seed what happens next: a request arrives or its answer does, the answer is lost, the request
// happens twice, or late, or never; a collector goes on, stands still, crashes, or takes the shard
// over. Who takes the shard over, and when, is decided by the dice, or by the collectors themselves
// (server/takeover/ownership.h), whose clocks jump and run at different speeds.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulate/cluster/fiber.h"
#include "tests/simulate/cluster/oracle.h"
#include "tests/simulate/cluster/planted.h"
#include "tests/support/fake_bucket.h"

namespace tacho::cluster {

inline constexpr uint32_t kShard = 3;

class Owner;

// A thread of a collector.
struct Task {
  Task(Fiber::Stacks& stacks, std::function<void()> body) : fiber(stacks, std::move(body)) {}

  bool waiting = false;  // For an answer.
  bool idle = false;     // Has nothing to do for now, and looks again once in a while.
  storage::BucketAnswer answer;
  Fiber fiber;
};

struct WorldResult {
  std::string violation;  // Empty: none.
  uint64_t step = 0;      // Of the violation, or how many there were.
  uint64_t acknowledged = 0;
  uint64_t takeovers = 0;
  uint64_t served = 0;  // Takeovers that came to serving.
  uint64_t commits = 0;
  uint64_t fenced = 0;
  uint64_t deleted = 0;
};

enum class Handover {
  kAnyTime,   // Anybody, at any moment: whatever clocks may lead to, and more.
  kByClocks,  // By signs of life. Three collectors of which one has the shard as its own, two
              // spares.
};

class World {
 public:
  World(uint64_t seed, Planted planted, Handover handover = Handover::kAnyTime);
  ~World();

  WorldResult Run(uint64_t steps);

  // --- What collectors ask for ---

  // From inside a task: sends the request, and comes back with the answer.
  storage::BucketAnswer Ask(Owner* owner, storage::BucketRequest request);
  // From inside a task: lets others go on.
  void Pause() { current_->fiber.Leave(); }
  // The same, of a task that has nothing to do.
  void PauseIdle() {
    current_->idle = true;
    Pause();
  }
  void Acknowledge(size_t agent, uint64_t sequence);
  uint64_t acknowledged(size_t agent) const { return acknowledged_[agent]; }
  uint64_t produced(size_t agent) const { return produced_[agent]; }

  bool Chance(double probability) { return Uniform() < probability; }
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  uint64_t Random() { return random_(); }

  // By the clock of a collector.
  absl::Time Now(size_t owner) const { return clocks_[owner].now; }
  absl::Duration takeover_after() const { return takeover_after_; }
  void CountTakeover() { ++epochs_; }

  Planted planted() const { return planted_; }
  Handover handover() const { return handover_; }
  Fiber::Stacks& stacks() { return stacks_; }
  WorldResult& result() { return result_; }
  // The tasks of a life are gone: nobody waits for their answers.
  void Forget(const Owner* owner);

 private:
  struct Request {
    Owner* owner = nullptr;
    Task* task = nullptr;  // Null: nobody waits for the answer.
    storage::BucketRequest request;
    bool applied = false;
    storage::BucketAnswer answer;
  };

  struct Clock {
    absl::Time now = absl::UnixEpoch() + absl::Hours(2);
    double speed = 1;
  };

  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }
  void Step();
  // A process begins, or becomes the owner.
  void Begin();
  void GoOnWithClocks();
  // A machine is lost for good, and nothing else goes wrong any more: the shard must come to an
  // owner that acknowledges everything.
  void Calm();
  void DeliverSomething();
  void Deliver(size_t index);
  void Apply(size_t index);
  void Wake(size_t index, storage::BucketAnswer answer);
  void TimeOut(Owner* owner);
  void Go(Owner* owner);

  const Planted planted_;
  const Handover handover_;
  std::mt19937_64 random_;
  Fiber::Stacks stacks_;
  Oracle oracle_;
  storage::BucketPersonality personality_;
  storage::BucketContents contents_;
  std::vector<Request> wire_;
  Task* current_ = nullptr;
  std::vector<std::unique_ptr<Owner>> owners_;
  std::array<uint64_t, 3> asleep_{};  // Steps, by owner.
  bool calm_ = false;                 // Every request is answered in time.
  size_t gone_ = 3;                   // This owner never comes back; 3: none.
  Watermarks produced_{};
  Watermarks acknowledged_{};
  uint64_t epochs_ = 0;
  // How hostile this run is.
  double sleeps_ = 0.002;
  double takeovers_ = 0;
  double crashes_ = 0;
  double disorder_ = 0;
  double lost_ = 0;
  double refused_ = 0;
  double twice_ = 0;
  double clock_jumps_ = 0;
  bool only_forward_ = false;  // Clocks jump so, as one that does not count while a machine sleeps.
  absl::Duration takeover_after_;
  std::array<Clock, 3> clocks_{};
  WorldResult result_;
};

}  // namespace tacho::cluster
