// The name that the operating system gives this machine.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace tacho {

// Empty if the machine has none.
inline std::string SystemHostName() {
  std::array<char, 257> name = {};  // The system's limit, and a zero byte that it may leave out.
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace tacho
