#include "agent/loaded_pages.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace tacho::agent {
namespace {

// Code that was changed when it was loaded could not be read from its file again.
bool HasChangedCode(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type != PT_DYNAMIC) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    for (const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr);
         entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_TEXTREL) return true;
      if (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0) return true;
    }
  }
  return false;
}

int Release(dl_phdr_info* info, size_t /*size*/, void* page_size) {
  const uintptr_t page = *static_cast<const uintptr_t*>(page_size);
  if (HasChangedCode(*info)) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) != 0) continue;
    const uintptr_t begin = (info->dlpi_addr + header.p_vaddr) / page * page;
    const uintptr_t end = info->dlpi_addr + header.p_vaddr + header.p_memsz;
    // A segment that refuses, such as the kernel's own page of code, keeps its pages.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void ReleaseLoadedPages() {
  uintptr_t page_size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  ::dl_iterate_phdr(Release, &page_size);
}

}  // namespace tacho::agent
