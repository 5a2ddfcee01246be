// trees: binary trees with strings, one thread.
//
// Pattern   Trees of several depths are built, walked and torn down, as many nodes in total at each depth; every node
//           is a block of 32 bytes and owns a string of 8 to 71. One tree lives from the start to the end.
// Idea      The binary tree benchmark of J. Ellis, P. Kovac and H. Boehm for garbage collectors, with a payload as the
//           syntax trees and documents of real programs have.
// Check     Both ends of each string, and the number of nodes, in the walk.
// Usage     trees [DEPTH = 17] [ROUNDS = 8]      DEPTH: of the deepest trees and of the one that stays, 4 to 30
#include <string.h>
#include "bench.h"

#define DEPTH_MIN 4

typedef struct node_s {
  struct node_s* left;
  struct node_s* right;
  char*          text;
  uint32_t       length; // of the text with its end
  uint32_t       key;
} node_t;

static char letter_of(uint32_t key) {
  return (char)('a' + key % 26);
}

// The node with this key; its children are numbered as in a heap.
static node_t* tree_build(size_t depth, uint32_t key) {
  node_t*  node = bench_not_null(malloc(sizeof(node_t)));
  uint32_t mixed = key * 0x9E3779B1u;
  node->key = key;
  node->length = 8 + (mixed >> 26);
  node->text = bench_not_null(malloc(node->length));
  memset(node->text, letter_of(key), node->length - 1);
  node->text[node->length - 1] = 0;
  node->left = depth == 0 ? NULL : tree_build(depth - 1, 2 * key);
  node->right = depth == 0 ? NULL : tree_build(depth - 1, 2 * key + 1);
  return node;
}

static uint64_t tree_walk(const node_t* node, size_t* count) {
  if (node == NULL) return 0;
  if (node->text[0] != letter_of(node->key) || node->text[node->length - 2] != letter_of(node->key))
    bench_fail("a string");
  if (node->text[node->length - 1] != 0) bench_fail("the end of a string");
  ++*count;
  return tree_walk(node->left, count) + node->length * (uint64_t)(node->key | 1) + tree_walk(node->right, count);
}

// Children first, or the parent first: both orders occur in real programs.
static void tree_free(node_t* node, size_t is_parent_first) {
  if (node == NULL) return;
  node_t* left = node->left;
  node_t* right = node->right;
  if (is_parent_first) {
    free(node->text);
    free(node);
  }
  tree_free(left, is_parent_first);
  tree_free(right, is_parent_first);
  if (!is_parent_first) {
    free(node->text);
    free(node);
  }
}

static uint64_t tree_check(const node_t* tree, size_t depth) {
  size_t   count = 0;
  uint64_t sum = tree_walk(tree, &count);
  if (count != ((size_t)2 << depth) - 1) bench_fail("the number of nodes");
  return sum;
}

int main(int argc, char** argv) {
  size_t depth_max = bench_argument(argc, argv, 1, "DEPTH", 17, 30);
  size_t rounds = bench_argument(argc, argv, 2, "ROUNDS", 8, SIZE_MAX);
  if (depth_max < DEPTH_MIN) {
    fprintf(stderr, "%s: DEPTH must be %d or more\n", argv[0], DEPTH_MIN);
    return 2;
  }
  uint64_t sum = 0;
  node_t*  kept = tree_build(depth_max, 1);
  for (size_t round = 0; round < rounds; round++) {
    for (size_t depth = DEPTH_MIN; depth <= depth_max; depth += 2) {
      size_t trees = (size_t)1 << (depth_max - depth);
      for (size_t i = 0; i < trees; i++) {
        node_t* tree = tree_build(depth, (uint32_t)(i + 1));
        sum = sum * 31 + tree_check(tree, depth);
        tree_free(tree, i % 2);
      }
    }
  }
  sum = sum * 31 + tree_check(kept, depth_max);
  tree_free(kept, 0);
  printf("trees %zu %zu: %016llx\n", depth_max, rounds, (unsigned long long)sum);
  return 0;
}
