// The heap profile as options ask for it.  Layer: api.
#pragma once

// At the start and at the end of the process.
void _mi_profile_begin(void);
void _mi_profile_end(void);
