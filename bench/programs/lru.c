// lru: a cache of fixed capacity that drops what was used least recently, one thread.
//
// Pattern   A hash table of entries in a doubly linked list. Each entry, its key (13 to 45 letters) and its value (16
//           bytes to 8 KiB, as many between n and 2n for each n) are blocks of their own. Requests for keys that are
//           the rarer the higher their rank; a miss inserts, and 1 of 8 requests gives a key a new value of another
//           size. Whatever exceeds the capacity in bytes is dropped from the old end.
// Idea      Cache servers and the caches within programs: the live heap is constant in bytes while the sizes of the
//           blocks change all the time, which is where fragmentation shows as memory. Popularity falls as 1 / rank:
//           L. Breslau and others, "Web Caching and Zipf-like Distributions: Evidence and Implications" (1999).
// Check     The key and both ends of each value, when it is found or dropped; the sum of the bytes, when all are.
// Usage     lru [REQUESTS = 2500000] [MIB = 64]      MIB: capacity
#include <stdbool.h>
#include <string.h>
#include "bench.h"

#define KEYS_BITS      20 // a million keys
#define BUCKETS        ((size_t)1 << 16)
#define VALUE_BITS_MIN 5  // 16 to 31
#define VALUE_BITS_MAX 13 // 4096 to 8191
#define KEY_MAX        64
#define FILL_AT        16

// A value begins with these; each byte from FILL_AT on is the low byte of `version`.
typedef struct value_s {
  uint64_t key_number;
  uint64_t version; // the number of the request that made it
} value_t;

typedef struct entry_s {
  struct entry_s* next; // in its bucket
  struct entry_s* newer;
  struct entry_s* older;
  char*           key;
  value_t*        value;
  size_t          value_size;
  uint64_t        hash;
} entry_t;

static entry_t** buckets;
static entry_t   ends; // of the ring of entries: its `older` is the newest, its `newer` the oldest
static size_t    n_bytes, n_bytes_max;

// ---- keys: the text of a number, with some common prefixes as keys have

static const char* const prefixes[] = {"user:", "session:", "page:/products/view/", "thumbnail:small:jpeg:"};

static size_t key_print(char key[KEY_MAX], uint64_t number) {
  uint64_t mixed = number * 0x9E3779B97F4A7C15u;
  size_t   n = 0;
  for (const char* p = prefixes[number % 4]; *p != 0; p++) key[n++] = *p;
  for (size_t i = 0; i < 8 + number % 17; i++) key[n++] = "0123456789abcdef"[(mixed >> (i * 4 % 64)) & 15];
  key[n] = 0;
  return n;
}

static uint64_t key_hash(const char* key) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (; *key != 0; key++) hash = (hash ^ (unsigned char)*key) * 0x100000001B3u;
  return hash ^ hash >> 32;
}

// ---- values

static unsigned char* value_byte(value_t* value, size_t at) {
  return (unsigned char*)value + at;
}

static value_t* value_new(size_t size, uint64_t key_number, uint64_t version) {
  value_t* value = bench_not_null(malloc(size));
  value->key_number = key_number;
  value->version = version;
  memset(value_byte(value, FILL_AT), (unsigned char)version, size - FILL_AT);
  return value;
}

static uint64_t value_check(const entry_t* entry, uint64_t now) {
  value_t* value = entry->value;
  if (value->version > now) bench_fail("a value of the future");
  if (entry->value_size > FILL_AT && *value_byte(value, entry->value_size - 1) != (unsigned char)value->version)
    bench_fail("the end of a value of %zu bytes", entry->value_size);
  char key[KEY_MAX];
  key_print(key, value->key_number);
  if (strcmp(key, entry->key) != 0) bench_fail("a value of another key");
  return value->version;
}

// ---- the cache

static size_t entry_bytes(const entry_t* entry) {
  return sizeof(entry_t) + strlen(entry->key) + 1 + entry->value_size;
}

static void ring_remove(entry_t* entry) {
  entry->newer->older = entry->older;
  entry->older->newer = entry->newer;
}

static void ring_add(entry_t* entry) {
  entry->newer = &ends;
  entry->older = ends.older;
  ends.older->newer = entry;
  ends.older = entry;
}

static entry_t** place_of(const char* key, uint64_t hash) {
  entry_t** place = &buckets[hash % BUCKETS];
  while (*place != NULL && ((*place)->hash != hash || strcmp((*place)->key, key) != 0)) place = &(*place)->next;
  return place;
}

// The entry becomes the newest. NULL if there is none.
static entry_t* cache_get(const char* key, uint64_t hash) {
  entry_t* entry = *place_of(key, hash);
  if (entry == NULL) return NULL;
  ring_remove(entry);
  ring_add(entry);
  return entry;
}

static void cache_drop_oldest(uint64_t now) {
  entry_t*  entry = ends.newer;
  entry_t** place = place_of(entry->key, entry->hash);
  value_check(entry, now);
  if (*place != entry) bench_fail("an entry is not in its bucket");
  *place = entry->next;
  ring_remove(entry);
  n_bytes -= entry_bytes(entry);
  free(entry->value);
  free(entry->key);
  free(entry);
}

// The cache owns the value from now on.
static void cache_put(const char* key, size_t length, uint64_t hash, value_t* value, size_t value_size, uint64_t now) {
  entry_t* entry = cache_get(key, hash);
  if (entry != NULL) {
    n_bytes -= entry_bytes(entry);
    free(entry->value);
  }
  else {
    entry = bench_not_null(malloc(sizeof(entry_t)));
    entry->key = bench_not_null(malloc(length + 1));
    memcpy(entry->key, key, length + 1);
    entry->hash = hash;
    entry->next = buckets[hash % BUCKETS];
    buckets[hash % BUCKETS] = entry;
    ring_add(entry);
  }
  entry->value = value;
  entry->value_size = value_size;
  n_bytes += entry_bytes(entry);
  while (n_bytes > n_bytes_max) cache_drop_oldest(now);
}

// ---- requests

// With n bits, all n equally likely, and all numbers of so many bits: the density falls as 1 / number.
static size_t random_with_bits(uint64_t random, unsigned n) {
  size_t top = (size_t)1 << (n - 1);
  return top + (random & (top - 1));
}

static size_t value_size_random(uint64_t random) {
  return random_with_bits(random, VALUE_BITS_MIN + (unsigned)(random >> 32) % (VALUE_BITS_MAX - VALUE_BITS_MIN + 1));
}

int main(int argc, char** argv) {
  size_t n_requests = bench_argument(argc, argv, 1, "REQUESTS", 2500000, SIZE_MAX);
  size_t mib = bench_argument(argc, argv, 2, "MIB", 64, 1 << 20);
  n_bytes_max = mib << 20;
  buckets = bench_not_null(calloc(BUCKETS, sizeof(entry_t*)));
  ends.newer = ends.older = &ends;

  uint64_t random = bench_random_seed(0), sum = 0, n_hits = 0;
  for (size_t now = 0; now < n_requests; now++) {
    uint64_t r = bench_random(&random);
    uint64_t number = random_with_bits(r, 1 + (unsigned)(r >> 32) % KEYS_BITS);
    char     key[KEY_MAX];
    size_t   length = key_print(key, number);
    uint64_t hash = key_hash(key);
    bool     is_update = r >> 61 == 0;
    entry_t* entry = is_update ? NULL : cache_get(key, hash);
    if (entry != NULL) {
      sum = sum * 31 + value_check(entry, now);
      n_hits++;
    }
    else {
      size_t size = value_size_random(bench_random(&random));
      cache_put(key, length, hash, value_new(size, number, now), size, now);
    }
  }
  while (ends.newer != &ends) cache_drop_oldest(n_requests);
  if (n_bytes != 0) bench_fail("%zu bytes in an empty cache", n_bytes);
  free(buckets);
  printf("lru %zu %zu: %llu hits, %016llx\n", n_requests, mib, (unsigned long long)n_hits, (unsigned long long)sum);
  return 0;
}
