// Memory that only loading and starting needed.
#pragma once

namespace tacho {

// Gives pages of the program's and its libraries' files back that are in this process' memory:
// symbol tables, relocations, code of the start. They stay in the system's page cache, and what is
// needed again is mapped again when it is touched, in microseconds. Segments that are never written
// to alone: nothing is lost. Call it once, before threads run that may load further libraries.
void ReleaseLoadedPages();

}  // namespace tacho
