// The functions of libc that libc_calls.cc replaces, as they are without it.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdint>

namespace tacho::simulate::real {

// Looked up without a lock or memory: libraries call these before main() begins.
template <typename Function>
Function* Find(Function** known, const char* name) {
  if (*known == nullptr) *known = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return *known;
}

using SyscallFunction = long(long, ...);
inline constinit SyscallFunction* syscall_function = nullptr;
inline SyscallFunction* Syscall() { return Find(&syscall_function, "syscall"); }

inline void Futex(std::atomic<uint32_t>* word, int operation, uint32_t value) {
  Syscall()(SYS_futex, word, operation, value, nullptr, nullptr, 0);
}

using CreateFunction = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
inline constinit CreateFunction* create_function = nullptr;
inline int CreateThread(pthread_t* handle, const pthread_attr_t* attributes, void* (*start)(void*),
                        void* argument) {
  return Find(&create_function, "pthread_create")(handle, attributes, start, argument);
}

}  // namespace tacho::simulate::real
