#pragma once

#include <windows.h>

typedef ULONGLONG REGHANDLE, *PREGHANDLE;

typedef struct _EVENT_DESCRIPTOR {
  USHORT    Id;
  UCHAR     Version, Channel, Level, Opcode;
  USHORT    Task;
  ULONGLONG Keyword;
} EVENT_DESCRIPTOR;
typedef const EVENT_DESCRIPTOR* PCEVENT_DESCRIPTOR;

typedef struct _EVENT_DATA_DESCRIPTOR {
  ULONGLONG Ptr;
  ULONG     Size, Reserved;
} EVENT_DATA_DESCRIPTOR, *PEVENT_DATA_DESCRIPTOR;

typedef struct _EVENT_FILTER_DESCRIPTOR* PEVENT_FILTER_DESCRIPTOR;
typedef VOID(NTAPI* PENABLECALLBACK)(LPCGUID session, ULONG what, UCHAR level, ULONGLONG any, ULONGLONG all,
                                     PEVENT_FILTER_DESCRIPTOR filter, PVOID context);

static inline void EventDataDescCreate(EVENT_DATA_DESCRIPTOR* data, const void* p, ULONG size) {
  data->Ptr = (ULONGLONG)(ULONG_PTR)p;
  data->Size = size;
  data->Reserved = 0;
}
