// What the damage campaign damages.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/crash/damage.h"
#include "tests/support/power_cut_env.h"

namespace tacho::crash {

// A database on a disk in memory, as a kill leaves it, in a form that two processes can share.
struct DamageImage {
  tacho::testing::PowerCutEnv::Files files;
  std::map<std::string, std::string> kinds;  // By path, as in `files`.
  std::string expected;                      // What is recorded in it.
  std::vector<std::string> earlier;          // What was, after each of the last messages.
};
std::string EncodeImage(const DamageImage& image);
DamageImage DecodeImage(const std::string& bytes);
// Gives each file of the database its kind.
void FillKinds(const std::string& directory, DamageImage* image);

class DamageVictim {
 public:
  virtual ~DamageVictim() = default;
  // Starts threads: call it in a process that ends afterwards.
  virtual DamageImage Make() = 0;
  // What Judge() compares with from now on.
  virtual void Load(const DamageImage& image) = 0;
  virtual Judgement Judge(const tacho::testing::PowerCutEnv::Files& files) = 0;
};

// A program of the campaign links the file of one of these:
//   damage_store_victim.cc  a store with a table of each column family, a log with columns and open
//                           rows, and all else
//   damage_spool_victim.cc  an agent's spool with tables and a log: rows, events, checkpoints. An
//                           entry in whose place is a Gap that reports it counts as contained.
std::unique_ptr<DamageVictim> MakeVictim();

}  // namespace tacho::crash
