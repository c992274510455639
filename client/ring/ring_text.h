// What text may stand in a ring, and the ring's file name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// std::string_view here and in recorder.h: trainers do not have Abseil.
namespace tacho::client {

// Valid UTF-8 without control characters (U+0000 to U+001F, U+007F). Empty is clean.
bool IsCleanText(std::string_view text);

// The longest clean text of at most `max_bytes` that `text` can be turned into: a control character
// becomes a space, a byte that is no UTF-8 a '?', and what is too long is cut between characters.
std::string CleanText(std::string_view text, size_t max_bytes);

// "<job>.<task>.<pid>.ring", or "<job>.<task>.<pid>-<copy>.ring" if copy is not 0. Bytes of the job
// outside [A-Za-z0-9_-] become '_' and it is cut to 128 bytes: the name is for people, the header
// of the file says which job it is.
std::string RingFileName(std::string_view job, uint32_t task, uint32_t pid, uint32_t copy);

}  // namespace tacho::client
