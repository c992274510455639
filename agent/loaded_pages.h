// Memory that only loading and starting needed.
#pragma once

namespace tacho::agent {

// Gives back this process's pages of the files of the program and its libraries: symbol tables,
// relocations, code of the start. They stay in the system's page cache, and a page that is needed
// again is mapped again in microseconds. Takes only segments that are never written to, so that
// nothing is lost. Call it once, before threads run that may load further libraries.
void ReleaseLoadedPages();

}  // namespace tacho::agent
