// Flags of the load programs: "--name VALUE", each with a default.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tacho::bench {

// `flags` names every flag that exists, with its default. Ends the process with 2 and a list of
// the flags where the arguments name another, or lack a value.
void ParseFlags(int argc, char** argv, std::map<std::string, std::string>* flags);

// The flag's value as a number; ends the process with 2 if it is none.
int64_t NumberFlag(const std::map<std::string, std::string>& flags, const std::string& name);

}  // namespace tacho::bench
