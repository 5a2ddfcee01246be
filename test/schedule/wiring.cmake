# The scheduler of virtual threads and its copy of the library (schedule.h), in the layout of the release build with internal checks.
# Included from test/CMakeLists.txt, for one build of several: the copy has its own definitions.
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR MI_USE_CXX)
  message(STATUS "Skipped: test schedule-protocols needs Linux, and the library as C")
  return()
endif()

set(mi_schedule_rest ${mi_sources})
list(TRANSFORM mi_schedule_rest PREPEND ${PROJECT_SOURCE_DIR}/)
set(mi_schedule_system ${mi_schedule_rest})
list(FILTER mi_schedule_system INCLUDE REGEX "/src/prim/")
list(REMOVE_ITEM mi_schedule_system ${PROJECT_SOURCE_DIR}/src/prim/lock.c)
list(REMOVE_ITEM mi_schedule_rest ${mi_schedule_system})

add_library(test-schedule-system OBJECT EXCLUDE_FROM_ALL ${mi_schedule_system})
add_library(test-schedule-library OBJECT EXCLUDE_FROM_ALL ${mi_schedule_rest})
foreach(target test-schedule-system test-schedule-library)
  mi_target(${target} ${mi_tls_static})
  target_compile_definitions(${target} PUBLIC MI_STATIC_LIB MI_DEBUG=2 MI_PADDING=0 MI_NO_IFUNC=1 _GNU_SOURCE)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src)
endforeach()
# What the hooks are made of shadows itself, and a thread-local variable is an ordinary one.
target_compile_options(test-schedule-library PRIVATE -include ${CMAKE_CURRENT_LIST_DIR}/hooks.h -Wno-shadow)

foreach(name protocols preemptions)
  mi_add_test(schedule ${name} schedule/test-${name}.c "" "test-schedule-library;test-schedule-system")
  target_sources(test-schedule-${name} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/schedule.c ${CMAKE_CURRENT_LIST_DIR}/blocks.c
    ${CMAKE_CURRENT_LIST_DIR}/library.c)
  target_compile_definitions(test-schedule-${name} PRIVATE MI_LIBRARY_BUILD=1)
  target_compile_options(test-schedule-${name} PRIVATE -U_FORTIFY_SOURCE) # longjmp to another stack
endforeach()
set_tests_properties(schedule-protocols PROPERTIES TIMEOUT 1800) # 20 seconds of the processor, on a loaded machine

if(MI_PYTHON)
  mi_add_script(schedule-faults-fit schedule 60 ${MI_PYTHON} test/schedule/faults.py --check)
endif()
