// The scheduler. Everything random comes from one generator, so a seed gives the same run again.
#include "tests/simulate/cluster/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tests/simulate/cluster/owner.h"

namespace tacho::cluster {

using storage::BucketAnswer;
using storage::BucketPersonality;
using storage::BucketRequest;

namespace {

constexpr size_t kStackBytes = size_t{256} << 10;
// By a true clock.
constexpr absl::Duration kStepTakes = absl::Milliseconds(10);
// A takeover_after as one would configure it: much longer than the bucket takes to answer.
constexpr double kSteadySteps = 2'000;
// So long after all faults a shard may be without an owner that acknowledges what there is.
constexpr uint64_t kCalmSteps = 60'000;
constexpr BucketPersonality kPersonalities[] = {BucketPersonality::kAws, BucketPersonality::kGcs,
                                                BucketPersonality::kRgw};

}  // namespace

World::World(uint64_t seed, Planted planted, Handover handover)
    : planted_(planted),
      handover_(handover),
      random_(seed),
      stacks_(kStackBytes),
      oracle_(kShard),
      personality_(kPersonalities[Below(3)]),
      contents_(personality_) {
  const auto choose = [&](std::initializer_list<double> values) {
    return *(values.begin() + Below(values.size()));
  };
  takeovers_ = choose({0.001, 0.004, 0.015});
  crashes_ = choose({0, 0.001, 0.01});
  disorder_ = choose({0, 0.1, 0.5});
  lost_ = choose({0, 0.05, 0.2});
  refused_ = choose({0, 0.03});
  twice_ = choose({0, 0.05});
  if (handover_ == Handover::kByClocks) {
    // Each collector holds a lock while it looks, and all of them are one thread here.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    takeovers_ = 0.02;  // Here a process begins.
    takeover_after_ = kStepTakes * choose({100, 400, kSteadySteps});
    only_forward_ = takeover_after_ == kStepTakes * kSteadySteps;
    clock_jumps_ = choose({0, 0.0005, 0.002});
    for (Clock& clock : clocks_) clock.speed = choose({0.5, 1, 1, 1, 2});
  }
  contents_.set_page_size(1 + Below(20));
  contents_.set_observer(
      [this](const std::string& key, const std::string* body) { oracle_.Changed(key, body); });
  for (size_t i = 0; i < asleep_.size(); ++i) owners_.push_back(std::make_unique<Owner>(*this, i));
}

World::~World() = default;

WorldResult World::Run(uint64_t steps) {
  if (handover_ == Handover::kByClocks) {
    for (const auto& owner : owners_) owner->Join();
  } else {
    owners_[0]->TakeOver(++epochs_);
  }
  for (; result_.step < steps && result_.violation.empty(); ++result_.step) {
    Step();
    oracle_.Check();
    result_.violation = oracle_.violation();
  }
  if (only_forward_ && result_.violation.empty()) Calm();
  for (const auto& owner : owners_) owner->Crash();
  result_.acknowledged = oracle_.acknowledged();
  result_.takeovers = epochs_;
  return result_;
}

void World::Calm() {
  sleeps_ = crashes_ = disorder_ = lost_ = refused_ = twice_ = clock_jumps_ = 0;
  calm_ = true;
  asleep_ = {};
  gone_ = Below(owners_.size());
  owners_[gone_]->Crash();
  const uint64_t end = result_.step + kCalmSteps;
  while (acknowledged_ != produced_ && result_.violation.empty() && result_.step < end) {
    ++result_.step;
    const Watermarks produced = produced_;
    Step();
    produced_ = produced;
    oracle_.Check();
    result_.violation = oracle_.violation();
  }
  if (acknowledged_ != produced_ && result_.violation.empty()) {
    result_.violation = absl::StrCat("nobody acknowledges the last rows for ", kCalmSteps,
                                     " steps in which nothing went wrong");
  }
}

void World::GoOnWithClocks() {
  for (Clock& clock : clocks_) clock.now += kStepTakes * clock.speed;
  if (!Chance(clock_jumps_)) return;
  const absl::Duration jump = absl::Seconds(static_cast<int64_t>(Below(3600)));
  Clock& clock = clocks_[Below(clocks_.size())];
  clock.now += only_forward_ || Chance(0.5) ? jump : -jump;
}

void World::Begin() {
  Owner* const owner = owners_[Below(owners_.size())].get();
  if (handover_ == Handover::kAnyTime) return owner->TakeOver(++epochs_);
  if (!owner->is_alive() && owner->index() != gone_) owner->Join();
}

void World::Step() {
  if (handover_ == Handover::kByClocks) GoOnWithClocks();
  const double x = Uniform();
  size_t index = Below(owners_.size());
  // Those that are nobody's owner have nothing to do.
  for (int i = 0; i < 2 && !owners_[index]->is_alive(); ++i) index = (index + 1) % owners_.size();
  Owner* owner = owners_[index].get();
  if (Chance(sleeps_)) asleep_[index] = 20 * (1 + Below(30));
  if (asleep_[index] > 0) {
    --asleep_[index];
    return;
  }
  if (x < 0.40) {
    DeliverSomething();
  } else if (x < 0.50) {
    owner->Offer(Below(kAgents));
  } else if (x < 0.85) {
    Go(owner);
  } else if (x < 0.90) {
    ++produced_[Below(kAgents)];
  } else if (x < 0.90 + takeovers_) {
    Begin();
  } else if (x < 0.90 + takeovers_ + crashes_) {
    const bool in_order = handover_ == Handover::kByClocks && Chance(0.5);
    in_order ? owner->End() : owner->Crash();
  } else if (!calm_) {
    TimeOut(owner);
  }
}

void World::Go(Owner* owner) {
  owner->Ship();
  current_ = owner->RandomTask();
  if (current_ == nullptr) return;
  current_->idle = false;
  current_->fiber.Run();
  current_ = nullptr;
  owner->Tidy();
}

BucketAnswer World::Ask(Owner* owner, BucketRequest request) {
  Task* const task = current_;
  wire_.push_back({.owner = owner, .task = task, .request = std::move(request)});
  task->waiting = true;
  task->fiber.Leave();
  return std::move(task->answer);
}

void World::DeliverSomething() {
  if (wire_.empty()) return;
  const size_t index = Chance(disorder_) ? Below(wire_.size()) : 0;
  // The requests of one that sleeps stay behind, and sometimes arrive meanwhile.
  const bool sleeps = asleep_[wire_[index].owner->index()] > 0;
  if (sleeps && !Chance(0.02)) {
    std::rotate(wire_.begin() + index, wire_.begin() + index + 1, wire_.end());
    return;
  }
  Deliver(index);
}

void World::Deliver(size_t index) {
  if (!wire_[index].applied) return Apply(index);
  BucketAnswer answer = std::move(wire_[index].answer);
  Wake(index, std::move(answer));
}

void World::Apply(size_t index) {
  const BucketAnswer unknown{absl::UnavailableError("no answer")};
  if (Chance(refused_)) return Wake(index, unknown);
  if (Chance(twice_)) wire_.push_back({wire_[index].owner, nullptr, wire_[index].request});
  BucketAnswer answer = contents_.Apply(wire_[index].request);
  const bool race_lost =
      absl::IsFailedPrecondition(answer.status) || absl::IsAlreadyExists(answer.status);
  // Ceph answers some lost races with 500; AWS answers 409 while another request is under way.
  if (race_lost && personality_ != BucketPersonality::kGcs && Chance(0.2)) {
    return Wake(index, unknown);
  }
  if (wire_[index].task == nullptr || Chance(lost_)) return Wake(index, unknown);
  wire_[index].answer = std::move(answer);
  wire_[index].applied = true;
}

void World::Wake(size_t index, BucketAnswer answer) {
  Task* task = wire_[index].task;
  wire_.erase(wire_.begin() + static_cast<ptrdiff_t>(index));
  if (task == nullptr) return;
  task->answer = std::move(answer);
  task->waiting = false;
}

// The caller has waited long enough. The request may be on its way still.
void World::TimeOut(Owner* owner) {
  std::vector<size_t> waiting;
  for (size_t i = 0; i < wire_.size(); ++i) {
    if (wire_[i].owner == owner && wire_[i].task != nullptr) waiting.push_back(i);
  }
  if (waiting.empty() || !Chance(0.5)) return;
  Request& request = wire_[waiting[Below(waiting.size())]];
  Task* task = std::exchange(request.task, nullptr);
  task->answer = {absl::UnavailableError("it took too long")};
  task->waiting = false;
}

void World::Forget(const Owner* owner) {
  for (Request& request : wire_) {
    if (request.owner == owner) request.task = nullptr;
  }
}

void World::Acknowledge(size_t agent, uint64_t sequence) {
  acknowledged_[agent] = std::max(acknowledged_[agent], sequence);
  oracle_.Acknowledged(agent, sequence);
}

}  // namespace tacho::cluster
