# Takes the place of the memory managers of Nim that do not call malloc, so that asking for one of them together with mimalloc
# fails when the program is compiled (mimalloc/config.nim).
{.error: "mimalloc needs --mm:orc, --mm:arc or --mm:atomicArc, because with other memory managers Nim allocates by itself; " &
         "choose one of these, or leave out -d:useMimalloc".}
