# Tests of the ring: its writer and its reader.
