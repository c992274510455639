// Runs all threads of a process one at a time, in an order that follows from a seed, on virtual
// clocks. The same seed gives the same run.
//
// A program that links schedule.cc has other definitions of the functions with which threads begin,
// wait, wake each other up and read clocks: pthread_*, futex (through syscall()), nanosleep(),
// clock_gettime(), and the sources of randomness. So Abseil's mutexes, RocksDB's condition
// variables and our own timed waits are the real ones, and none of them knows.
//
// One thread has the baton and runs. It gives the baton away where it must wait, and, one time in
// so many, where it might as well have been interrupted: at a lock, at a wake-up, when it looks at
// a clock, and where it calls Interrupt(). Time passes a little with each of these steps, and jumps
// to the next deadline when every thread waits.
//
// What is not virtual: memory, files that are opened directly, and what a thread does after the
// destructors of its thread-local variables. Addresses must be the same in each run:
// BeginAgainWithoutRandomAddresses() sees to that.
//
// There can be only one schedule in a process, because there is only one pthread_create().
#pragma once

#include <cstdint>
#include <cstdio>

namespace tacho::simulate {

// A machine: its threads read its clocks, and stand still while it is suspended. A thread belongs
// to the machine of the thread that began it.
using HostId = int;
inline constexpr HostId kLaboratory = 0;  // Of the thread that called Begin(). Its clock is right.

struct ScheduleOptions {
  uint64_t seed = 1;
  // A thread is interrupted at one in so many of the places where it can be. 0: at none.
  uint32_t interrupt_one_in = 16;
  int64_t start_unix_ns = 1'700'000'000'000'000'000;
  // Gets a line for each thread that is given the baton: where two runs of a seed differ, something
  // is not virtual that should be. May be null.
  std::FILE* trace = nullptr;
};

// Runs the program again without address space randomisation, if it has that. Call it first in
// main(), before anything else begins.
void BeginAgainWithoutRandomAddresses(char** argv);

// From now on the calling thread, and those that it begins, are scheduled. Once in a process, when
// there is no other thread. It has no end: leave the process with _exit().
void BeginSchedule(const ScheduleOptions& options);

HostId AddHost();
// The calling thread, and threads that it begins, belong to `host` until this is destroyed.
class OnHost {
 public:
  explicit OnHost(HostId host);
  ~OnHost();
  OnHost(const OnHost&) = delete;
  OnHost& operator=(const OnHost&) = delete;

 private:
  const HostId before_;
};
HostId CurrentHost();

// Nanoseconds of the laboratory since BeginSchedule().
int64_t LaboratoryNs();
void StepWallClock(HostId host, int64_t by_ns);
// How far the host's wall clock is ahead of the laboratory's, which is right.
int64_t WallClockError(HostId host);
// Both clocks of the host run faster by so many millionths; at most 1,000.
void SetDrift(HostId host, int parts_per_million);
// No thread of the host runs for so long. Its wall clock goes on meanwhile, its monotonic one does
// not.
void Suspend(HostId host, int64_t for_ns);

// The thread may be interrupted here.
void Interrupt();
// Waits, on the caller's monotonic clock.
void SleepNs(int64_t ns);
// Random numbers of the schedule: a function of the seed.
uint64_t ScheduleRandom();

// A sum of all decisions so far: two runs that have the same are the same.
uint64_t Fingerprint();
uint64_t Switches();

}  // namespace tacho::simulate
