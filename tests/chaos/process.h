// A program that the campaign starts and kills. It dies with the campaign.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tacho::chaos {

// For one thread, the main one: the kernel takes the end of the thread that started a program for
// the end of the campaign.
class Process {
 public:
  // What it says is appended to the file `log`. `environment` is added to the campaign's, as
  // "NAME=VALUE". Nothing runs yet.
  Process(std::vector<std::string> words, std::string log,
          std::vector<std::string> environment = {});
  ~Process() { Kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Start();
  void Kill();  // SIGKILL; returns when it is gone.
  static constexpr int kCrashed = -1;
  static constexpr int kTerminated = -2;
  // SIGTERM; its exit status, kTerminated if it had not come so far as to heed the signal, kCrashed
  // if it did not end in time, and was killed, or by another signal.
  int Stop(absl::Duration patience);
  // False if it ended by itself.
  bool alive();

 private:
  const std::vector<std::string> words_;
  const std::string log_;
  const std::vector<std::string> environment_;
  pid_t pid_ = -1;
};

// A port of 127.0.0.1 that nobody listens on at this moment.
int FreePort();
bool IsListening(int port);

}  // namespace tacho::chaos
