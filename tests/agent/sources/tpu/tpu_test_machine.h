// A machine with TPUs as its sysfs, /proc and /dev show them, in a temporary directory.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tacho::agent::testing {

class TpuTestMachine {
 public:
  TpuTestMachine();
  TpuTestMachine(const TpuTestMachine&) = delete;
  TpuTestMachine& operator=(const TpuTestMachine&) = delete;
  ~TpuTestMachine();

  // A PCI function with these files, as "0x1ae0".
  void AddFunction(const std::string& address, const std::string& vendor, const std::string& device,
                   const std::string& subsystem = "");
  // A v5p (device 0x0062) whose device file is /dev/vfio/<group>.
  void AddV5p(const std::string& address, int group);
  void SetVfio(const std::string& address, int group);
  void SetAccel(const std::string& address, int number);
  void RemoveDevice(const std::string& name);
  // A process that has these files below /dev open.
  void AddProcess(int pid, const std::vector<std::string>& devices,
                  const std::map<std::string, std::string>& environment);
  void RemoveProcess(int pid);

  const std::string& root() const { return root_; }
  std::string sys() const { return root_ + "/sys"; }
  std::string proc() const { return root_ + "/proc"; }
  std::string dev() const { return root_ + "/dev"; }

 private:
  std::string root_;
};

}  // namespace tacho::agent::testing
