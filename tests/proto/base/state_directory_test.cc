#include "proto/base/state_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>

namespace tacho {
namespace {

class StateDirectoryTest : public ::testing::Test {
 protected:
  StateDirectoryTest() {
    world_.user = geteuid();
    world_.installed = "/nonexistent/tachograph";
    world_.environment = [this](const char* name) -> const char* {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    };
  }

  std::map<std::string, std::string> variables_;
  StateWorld world_;
};

TEST_F(StateDirectoryTest, IsBelowHome) {
  variables_ = {{"HOME", "/home/ana"}};
  EXPECT_EQ(*StateDirectory(world_), "/home/ana/.local/state/tachograph");
}

TEST_F(StateDirectoryTest, FollowsTheVariableOfTheDesktopSpecification) {
  variables_ = {{"HOME", "/home/ana"}, {"XDG_STATE_HOME", "/data/state"}};
  EXPECT_EQ(*StateDirectory(world_), "/data/state/tachograph");
}

TEST_F(StateDirectoryTest, IgnoresARelativeVariable) {
  variables_ = {{"HOME", "/home/ana"}, {"XDG_STATE_HOME", "state"}};
  EXPECT_EQ(*StateDirectory(world_), "/home/ana/.local/state/tachograph");
}

TEST_F(StateDirectoryTest, IsThatOfThePackageForItsOwner) {
  variables_ = {{"HOME", "/home/ana"}};
  world_.installed = ::testing::TempDir();
  world_.installed = mkdtemp((world_.installed + "/state_XXXXXX").data());
  world_.installed_owner = geteuid();
  EXPECT_EQ(*StateDirectory(world_), world_.installed);
  world_.user = geteuid() + 1;
  EXPECT_EQ(*StateDirectory(world_), "/home/ana/.local/state/tachograph") << "another user's";
  rmdir(world_.installed.c_str());
}

TEST_F(StateDirectoryTest, WithoutHomeSaysWhatIsMissing) {
  const auto directory = StateDirectory(world_);
  ASSERT_EQ(directory.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(directory.status().message().find("HOME"), absl::string_view::npos);
}

}  // namespace
}  // namespace tacho
