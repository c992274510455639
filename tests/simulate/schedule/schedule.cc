// The schedule is a list of threads, of which one runs. All of its state is touched only by the
// thread that has the baton, so it needs no lock: handing the baton over is what orders memory.
// Blocking is always the same: note what the thread waits for (an address, a deadline or both), and
// give the baton away; waking is to make threads that wait for an address ready.
#include "tests/simulate/schedule/schedule.h"

#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "tests/simulate/schedule/real_calls.h"
#include "tests/simulate/schedule/waiting.h"

namespace tacho::simulate {
namespace {

// What a step costs, so that a thread that looks at the clock until something happens gets there.
constexpr int64_t kSwitchNs = 1000;
constexpr int64_t kClockReadNs = 50;

struct Host {
  int64_t wall_ahead_ns = 0;
  int64_t drift_ns = 0;  // Gathered until drift_since.
  int64_t drift_since = 0;
  int64_t parts_per_million = 0;
  int64_t slept_ns = 0;  // How long it was suspended.
  int64_t suspended_until = 0;
};

struct Thread {
  enum class State { kReady, kRunning, kBlocked, kFinished };
  int id = 0;
  HostId host = kLaboratory;
  State state = State::kReady;
  const void* awaits = nullptr;
  const char* what = "";
  Deadline deadline;
  bool timed_out = false;
  std::atomic<uint32_t> baton = 0;
  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
  pthread_t handle{};
  int leaving = 0;  // Rounds of its destructors.
};

struct State {
  ScheduleOptions options;
  long process = 0;
  uint64_t random = 1;
  int64_t now = 0;
  std::vector<Host> hosts;
  int begun = 0;                  // Threads so far: a disk that is full for hours makes many.
  std::vector<Thread*> live;      // Those that have not finished, in the order of their ids.
  std::vector<Thread*> unjoined;  // Those that nobody has waited for yet, likewise.
  Thread* running = nullptr;
  uint64_t fingerprint = 14695981039346656037ull;
  uint64_t switches = 0;
  pid_t leaving = 0;             // A thread that has given the baton away for the last time.
  std::vector<Thread*> choice;   // Ready threads, while one is chosen.
  std::vector<Thread*> waiting;  // Those of which some are woken.
  pthread_key_t leave{};
};

State* state = nullptr;
// How deep the thread is in the schedule itself: there it is not interrupted.
constinit thread_local int inside = 0;
constinit thread_local Thread* self = nullptr;

uint64_t NextRandom() {  // splitmix64, public domain (S. Vigna).
  uint64_t z = (state->random += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

int64_t DriftNs(const Host& host) {
  return host.drift_ns + (state->now - host.drift_since) / 1'000'000 * host.parts_per_million;
}

int64_t MonotonicNs(const Host& host) { return state->now + DriftNs(host) - host.slept_ns; }

// The laboratory's wall clock: the truth that hosts' clocks differ from.
int64_t TrueUnixNs() { return state->options.start_unix_ns + state->now; }

int64_t WallNs(const Host& host) { return TrueUnixNs() + DriftNs(host) + host.wall_ahead_ns; }

int64_t ReadNs(const Host& host, Clock clock) {
  return clock == Clock::kWall ? WallNs(host) : MonotonicNs(host) + kMonotonicStartNs;
}

// When, by the laboratory's time, the thread's deadline comes, as its host's clock stands now.
int64_t DueNs(const Thread& thread) {
  const Host& host = state->hosts[thread.host];
  const int64_t left = thread.deadline.ns - ReadNs(host, thread.deadline.clock);
  const int64_t due = left <= 0 ? state->now : state->now + left;
  return std::max(due, host.suspended_until);
}

void MakeReady(Thread* thread, bool timed_out) {
  thread->state = Thread::State::kReady;
  thread->timed_out = timed_out;
  thread->awaits = nullptr;
}

bool MayRun(const Thread& thread) {
  return thread.state == Thread::State::kReady &&
         state->hosts[thread.host].suspended_until <= state->now;
}

// When the next thing happens by itself; INT64_MAX if nothing does. Makes ready what is due.
int64_t LookAtDeadlines() {
  int64_t next = std::numeric_limits<int64_t>::max();
  for (Thread* thread : state->live) {
    if (thread->state == Thread::State::kBlocked && thread->deadline.set) {
      const int64_t due = DueNs(*thread);
      if (due <= state->now) {
        MakeReady(thread, true);
      } else {
        next = std::min(next, due);
      }
    } else if (thread->state == Thread::State::kReady) {
      const int64_t until = state->hosts[thread->host].suspended_until;
      if (until > state->now) next = std::min(next, until);
    }
  }
  return next;
}

// Writes a line for each thread to standard error: its machine, and what it waits for.
void PrintThreads() {
  constexpr const char* kStates[] = {"ready", "running", "blocked", "finished"};
  std::fprintf(stderr, "at %.6f s, after %llu switches:\n", static_cast<double>(state->now) * 1e-9,
               static_cast<unsigned long long>(state->switches));
  for (const Thread* thread : state->live) {
    char name[16] = "main";
    if (thread->start != nullptr) pthread_getname_np(thread->handle, name, sizeof(name));
    std::fprintf(stderr, "  thread %d (%s) of host %d: %s, awaits %s at %p", thread->id, name,
                 thread->host, kStates[static_cast<int>(thread->state)], thread->what,
                 thread->awaits);
    if (thread->state == Thread::State::kBlocked && thread->deadline.set) {
      std::fprintf(stderr, ", at most %.6f s",
                   static_cast<double>(DueNs(*thread) - state->now) * 1e-9);
    }
    std::fprintf(stderr, "\n");
  }
}

[[noreturn]] void Deadlock() {
  std::fprintf(stderr, "simulate: every thread waits for ever\n");
  PrintThreads();
  _exit(3);
}

Thread* Pick() {
  for (;;) {
    const int64_t next = LookAtDeadlines();
    state->choice.clear();
    for (Thread* thread : state->live) {
      if (MayRun(*thread)) state->choice.push_back(thread);
    }
    if (!state->choice.empty()) return state->choice[NextRandom() % state->choice.size()];
    if (next == std::numeric_limits<int64_t>::max()) Deadlock();
    state->now = next;
  }
}

void GiveTo(Thread* next) {
  next->state = Thread::State::kRunning;
  state->running = next;
  state->now += kSwitchNs;
  ++state->switches;
  if (state->options.trace != nullptr) {
    std::fprintf(state->options.trace, "%lld: %d -> %d (%s), %zu ready\n",
                 static_cast<long long>(state->now), self->id, next->id, next->what,
                 state->choice.size());
  }
  state->fingerprint = (state->fingerprint ^ static_cast<uint64_t>(next->id)) * 1099511628211ull;
  state->fingerprint = (state->fingerprint ^ static_cast<uint64_t>(state->now)) * 1099511628211ull;
}

void Post(Thread* thread) {
  thread->baton.store(1, std::memory_order_release);
  real::Futex(&thread->baton, FUTEX_WAKE_PRIVATE, 1);
}

void AwaitBaton(Thread* thread) {
  while (thread->baton.exchange(0, std::memory_order_acquire) == 0) {
    real::Futex(&thread->baton, FUTEX_WAIT_PRIVATE, 0);
  }
  // What a thread frees when it ends must not lie between what others allocate.
  while (state->leaving != 0 &&
         real::Syscall()(SYS_tgkill, state->process, state->leaving, 0) == 0) {
    real::Syscall()(SYS_sched_yield);
  }
  state->leaving = 0;
}

// Lets another thread run, or the same; the caller has set its own state.
void Switch() {
  Thread* const next = Pick();
  GiveTo(next);
  if (next == self) return;
  Post(next);
  AwaitBaton(self);
}

void Finish(Thread* thread) {
  ++inside;
  thread->state = Thread::State::kFinished;
  state->live.erase(std::find(state->live.begin(), state->live.end(), thread));
  WakeAll(thread);
  Thread* const next = Pick();
  GiveTo(next);
  state->leaving = static_cast<pid_t>(real::Syscall()(SYS_gettid));
  Post(next);
}

// Destructors of thread-local data run in up to four rounds; this one ends the thread in the last,
// so that those of others have run with the baton.
void Leave(void* argument) {
  auto* const thread = static_cast<Thread*>(argument);
  if (++thread->leaving < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(state->leave, thread);
  } else {
    Finish(thread);
  }
}

void* RunThread(void* argument) {
  self = static_cast<Thread*>(argument);
  AwaitBaton(self);
  pthread_setspecific(state->leave, self);
  return self->start(self->argument);
}

Thread* AddThread() {
  auto* const thread = new Thread;
  thread->id = state->begun++;
  state->live.push_back(thread);
  return thread;
}

}  // namespace

bool Scheduled() { return state != nullptr && self != nullptr && inside == 0; }

bool Block(const void* awaits, const char* what, const Deadline& deadline) {
  ++inside;
  self->state = Thread::State::kBlocked;
  self->awaits = awaits;
  self->what = what;
  self->deadline = deadline;
  Switch();
  self->deadline.set = false;
  --inside;
  return !self->timed_out;
}

int WakeSome(const void* awaited, int most) {
  ++inside;
  std::vector<Thread*>& waiting = state->waiting;
  waiting.clear();
  for (Thread* thread : state->live) {
    if (thread->state == Thread::State::kBlocked && thread->awaits == awaited) {
      waiting.push_back(thread);
    }
  }
  int woken = 0;
  while (woken < most && !waiting.empty()) {
    const size_t chosen = NextRandom() % waiting.size();
    MakeReady(waiting[chosen], false);
    waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(chosen));
    ++woken;
  }
  --inside;
  return woken;
}

void WakeAll(const void* awaited) { WakeSome(awaited, INT_MAX); }

int64_t ReadClock(Clock clock) {
  state->now += kClockReadNs;
  return ReadNs(state->hosts[self->host], clock);
}

int BeginThread(pthread_t* handle, const pthread_attr_t* attributes, void* (*start)(void*),
                void* argument) {
  ++inside;
  Thread* const thread = AddThread();
  thread->host = self->host;
  thread->start = start;
  thread->argument = argument;
  thread->state = Thread::State::kBlocked;
  thread->what = "its beginning";
  const int failure = real::CreateThread(handle, attributes, &RunThread, thread);
  if (failure == 0) {
    thread->handle = *handle;
    state->unjoined.push_back(thread);
    MakeReady(thread, false);
  } else {
    thread->state = Thread::State::kFinished;
    state->live.pop_back();
  }
  --inside;
  return failure;
}

void AwaitEnd(pthread_t handle) {
  const auto found = std::find_if(
      state->unjoined.begin(), state->unjoined.end(),
      [handle](const Thread* thread) { return pthread_equal(thread->handle, handle) != 0; });
  if (found == state->unjoined.end()) return;
  Thread* const thread = *found;
  state->unjoined.erase(found);
  while (thread->state != Thread::State::kFinished) Block(thread, "the end of a thread", {});
}

void BeginAgainWithoutRandomAddresses(char** argv) {
  const int now = personality(0xffffffff);
  if (now == -1 || (now & ADDR_NO_RANDOMIZE) != 0) return;
  if (personality(static_cast<unsigned>(now) | ADDR_NO_RANDOMIZE) == -1) return;
  execv("/proc/self/exe", argv);
}

void BeginSchedule(const ScheduleOptions& options) {
  // Which arena a thread gets depends on when others let go of theirs.
  mallopt(M_ARENA_MAX, 1);
  // One thread runs at a time: on one processor the baton is handed over without waking another.
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof(one), &one);
  auto* const made = new State;
  made->options = options;
  made->random = options.seed;
  made->process = real::Syscall()(SYS_getpid);
  made->hosts.resize(1);
  pthread_key_create(&made->leave, &Leave);
  state = made;
  self = AddThread();
  self->state = Thread::State::kRunning;
  state->running = self;
}

HostId AddHost() {
  state->hosts.push_back({.drift_since = state->now});
  return static_cast<HostId>(state->hosts.size() - 1);
}

OnHost::OnHost(HostId host) : before_(self->host) { self->host = host; }
OnHost::~OnHost() { self->host = before_; }
HostId CurrentHost() { return self->host; }

int64_t LaboratoryNs() { return state->now; }

void StepWallClock(HostId host, int64_t by_ns) { state->hosts[host].wall_ahead_ns += by_ns; }

int64_t WallClockError(HostId host) { return WallNs(state->hosts[host]) - TrueUnixNs(); }

void SetDrift(HostId host, int parts_per_million) {
  Host& changed = state->hosts[host];
  changed.drift_ns = DriftNs(changed);
  changed.drift_since = state->now;
  changed.parts_per_million = parts_per_million;
}

void Suspend(HostId host, int64_t for_ns) {
  Host& changed = state->hosts[host];
  changed.suspended_until = std::max(changed.suspended_until, state->now) + for_ns;
  changed.slept_ns += for_ns;
}

void Interrupt() {
  if (!Scheduled() || state->options.interrupt_one_in == 0) return;
  if (NextRandom() % state->options.interrupt_one_in != 0) return;
  Yield();
}

void Yield() {
  ++inside;
  self->state = Thread::State::kReady;
  self->what = "its turn";
  Switch();
  --inside;
}

void SleepNs(int64_t ns) {
  const int64_t until = ReadClock(Clock::kMonotonic) + ns;
  Block(nullptr, "time", {.set = true, .clock = Clock::kMonotonic, .ns = until});
}

uint64_t ScheduleRandom() { return NextRandom(); }
uint64_t Fingerprint() { return state->fingerprint; }
uint64_t Switches() { return state->switches; }

}  // namespace tacho::simulate
