#include "tests/agent/sources/tpu/tpu_test_machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/support/tfevents_writer.h"

namespace tacho::agent::testing {
namespace fs = std::filesystem;
using ::tacho::testing::WriteFile;

TpuTestMachine::TpuTestMachine() {
  root_ = (fs::path(::testing::TempDir()) /
           absl::StrCat("tpu_", ::testing::UnitTest::GetInstance()->current_test_info()->name(),
                        "_", ::getpid()))
              .string();
  fs::remove_all(root_);
  fs::create_directories(sys() + "/bus/pci/devices");
  fs::create_directories(proc());
  fs::create_directories(dev());
}

TpuTestMachine::~TpuTestMachine() { fs::remove_all(root_); }

void TpuTestMachine::AddFunction(const std::string& address, const std::string& vendor,
                                 const std::string& device, const std::string& subsystem) {
  const std::string path = sys() + "/bus/pci/devices/" + address;
  WriteFile(path + "/vendor", vendor + "\n");
  WriteFile(path + "/device", device + "\n");
  if (!subsystem.empty()) WriteFile(path + "/subsystem_device", subsystem + "\n");
}

void TpuTestMachine::AddV5p(const std::string& address, int group) {
  AddFunction(address, "0x1ae0", "0x0062");
  SetVfio(address, group);
}

void TpuTestMachine::SetVfio(const std::string& address, int group) {
  fs::create_symlink(absl::StrCat("../../../../kernel/iommu_groups/", group),
                     sys() + "/bus/pci/devices/" + address + "/iommu_group");
  WriteFile(absl::StrCat(dev(), "/vfio/", group), "");
}

void TpuTestMachine::SetAccel(const std::string& address, int number) {
  fs::create_directories(absl::StrCat(sys(), "/bus/pci/devices/", address, "/accel/accel", number));
  WriteFile(absl::StrCat(dev(), "/accel", number), "");
}

void TpuTestMachine::RemoveDevice(const std::string& name) { fs::remove(dev() + "/" + name); }

void TpuTestMachine::AddProcess(int pid, const std::vector<std::string>& devices,
                                const std::map<std::string, std::string>& environment) {
  const std::string path = absl::StrCat(proc(), "/", pid);
  fs::create_directories(path + "/fd");
  int fd = 3;
  for (const std::string& device : devices) {
    fs::create_symlink(dev() + "/" + device, absl::StrCat(path, "/fd/", fd++));
  }
  std::string text;
  for (const auto& [name, value] : environment) {
    text += name + "=" + value;
    text.push_back('\0');
  }
  WriteFile(path + "/environ", text);
}

void TpuTestMachine::RemoveProcess(int pid) { fs::remove_all(absl::StrCat(proc(), "/", pid)); }

}  // namespace tacho::agent::testing
