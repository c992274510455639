// Threads whose work can wait while others have something to do.
#pragma once

namespace tacho {

// Gives the calling thread a name, of at most 15 bytes, and a nice value of kBackgroundNice: where
// all processors are busy it gets about a tenth of what a usual thread does. Such a thread must
// hold no lock for long that a usual one waits for. Where the priority cannot be changed it stays.
inline constexpr int kBackgroundNice = 10;
void BecomeBackgroundThread(const char* name);

}  // namespace tacho
