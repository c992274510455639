// The rules for text in a ring, and the name of its file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Trainers do not have Abseil, so here and in recorder.h texts are std::string_view.
namespace tacho::client {

// Valid UTF-8 without control characters (U+0000 to U+001F, U+007F). Empty is clean.
bool IsCleanText(std::string_view text);

// `text` as clean text of at most `max_bytes`: a control character becomes a space, a byte that is
// not UTF-8 becomes '?', and a text that is too long is cut between characters.
std::string CleanText(std::string_view text, size_t max_bytes);

// "<job>.<task>.<pid>.ring", or "<job>.<task>.<pid>-<copy>.ring" if copy is not 0. Bytes of the job
// outside [A-Za-z0-9_-] become '_' and the job is cut to 128 bytes: the name is for people;
// programs read the job from the file's header.
std::string RingFileName(std::string_view job, uint32_t task, uint32_t pid, uint32_t copy);

}  // namespace tacho::client
