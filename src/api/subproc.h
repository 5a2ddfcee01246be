// Ids of subprocesses as the interface has them.  Layer: api.
#pragma once

#include "../heap/heap.h"

mi_subproc_t* _mi_subproc_of_id(mi_subproc_id_t id);
