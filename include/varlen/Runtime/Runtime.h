/*===- Runtime.h - What compiled functions call ------------------*- C -*-===*\
|*
|* Part of the Varlen project, under the Apache License v2.0 with LLVM
|* Exceptions. See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The runtime library of code that the varlen-to-cpu pipeline makes. C ABI; it
|* needs libc and pthreads only: neither LLVM nor the C++ library.
|*
|* A compiled function that finds an error in its inputs (extents that do not
|* agree, bad cu_seqlens) writes nothing; `varlen_last_error` then says what was
|* wrong.
|*
\*===----------------------------------------------------------------------===*/

#ifndef VARLEN_RUNTIME_RUNTIME_H
#define VARLEN_RUNTIME_RUNTIME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One unit of work: some query rows of one kv head of one sequence. A (query
   row, head of the group) pair p of a sequence is query row p / group and query
   head kv_head * group + p % group, with group = query heads / kv heads. */
typedef struct varlen_work_tile {
  int64_t q_row; /* packed index of the sequence's first query row */
  int64_t first; /* first pair of the tile */
  int64_t rows;  /* number of pairs, 1..block_m */
  int64_t kv_head;
  int64_t k_row;   /* packed index of the sequence's first key row; of keys in
                      pages the number of the sequence */
  int64_t k_rows;  /* keys in use; -1: the rows belong to no sequence (past
                      seqused_q or cu_seqlens_q[N]), q_row is the first such
                      row: out is 0 and lse is -inf whatever the sink */
  int64_t queries; /* query rows in use of the sequence */
  int64_t offset;  /* its q_offset */
  int64_t k_begin; /* union of the keys that the tile's rows see; */
  int64_t k_end;   /* k_begin == k_end if there is none */
} varlen_work_tile;

/* The most rows of a tensor. */
#define VARLEN_MAX_ROWS ((int64_t)1 << 60)

/* The most rows of a sequence: kernels count what is in one in 32 bits, also
   where a block of rows begins that ends behind the last one. */
#define VARLEN_MAX_SEQUENCE ((int64_t)1 << 30)

/* A mask: stores the keys, begin and end, that some of the queries `first` to
   `last` of a sequence see; begin may lie behind end. Offsets are any integers,
   the rest is of a list that has been checked. */
typedef void (*varlen_mask_fn)(int64_t queries, int64_t keys, int64_t offset,
                               int64_t first, int64_t last, int64_t range[2]);

/* Checks cu_seqlens and seqused, then cuts every sequence and kv head into
   tiles of at most block_m pairs. Each (query row of tq, query head) is in
   exactly one tile. The sequence with the tile of most keys (k_end - k_begin)
   is first, in it one kv head after the other, of a head the tile of most keys;
   ties are in order of q_row, and of first.

   Integers are i32 or i64 (index_bytes 4 or 8). cu_q and cu_k have N + 1
   entries for N sequences, seqused_q, seqused_k and q_offset (each may be null)
   N. With a null mask every query sees all keys of its sequence.

   With a null cu_k of -1 entries keys are in pages: seqused_k is needed, and
   says from 0 to tk for each sequence.

   Returns the number of tiles and stores the list, which `varlen_free_tiles`
   or free releases. On bad input returns -1, stores null and sets the error. */
int64_t varlen_work_tiles(const void *cu_q, int64_t cu_q_size, const void *cu_k,
                          int64_t cu_k_size, const void *seqused_q,
                          int64_t seqused_q_size, const void *seqused_k,
                          int64_t seqused_k_size, const void *q_offset,
                          int64_t q_offset_size, int32_t index_bytes,
                          int64_t tq, int64_t tk, int64_t kv_heads,
                          int64_t group, int64_t block_m, varlen_mask_fn mask,
                          varlen_work_tile **tiles);
void varlen_free_tiles(varlen_work_tile *tiles);

/* Items that compute out of rows and keys are whole tiles, or parts of one:
   some of the keys of its rows, whose sums are merged in the order of parts by
   one more item, the tile. */
enum { VARLEN_ITEM_WHOLE, VARLEN_ITEM_PART, VARLEN_ITEM_MERGE };

typedef struct varlen_work_item {
  varlen_work_tile tile; /* [k_begin, k_end) of a part are keys of that part */
  int64_t kind;          /* VARLEN_ITEM_... */
  int64_t few;           /* whether its sequence has few pairs */
  int64_t slot;          /* of the sums of a part, or of a tile's first part;
                            the slots of its other parts follow */
} varlen_work_item;

/* The items of a list of tiles. */
typedef struct varlen_work_items {
  varlen_work_item *items; /* which `varlen_free_tiles` or free releases */
  int64_t first_merge;     /* from here on they are VARLEN_ITEM_MERGE */
  int64_t slots, few_slots;
} varlen_work_items;

/* Makes items of `count` tiles, in the order of these. A tile with more than an
   eighth of the scores of all tiles, if each of its rows saw all of its keys,
   becomes its parts: blocks of kv_block keys, part_blocks of them, counted from
   the first key of the sequence on, so that a sum has the same order in every
   batch. Merging items follow all others.

   A sequence has few pairs if these are at most max_few, or half of that where
   a tile visits no more than two blocks: parts of it have few_part_blocks
   blocks, and slots of their own. With 0 blocks no tile is cut.

   Returns the number of items. Without memory returns -1, stores a null list
   and sets the error. */
int64_t varlen_split_tiles(const varlen_work_tile *tiles, int64_t count,
                           int64_t group, int64_t kv_block, int64_t max_few,
                           int64_t part_blocks, int64_t few_part_blocks,
                           varlen_work_items *items);

/* Checks where keys in pages are: row s of `table`, `rows` x `columns` and
   row_stride entries from one row to the next, has the pages of sequence s, of
   page_rows rows each. seqused_k, of `rows` integers of index_bytes, is within
   them, and the entries that it uses are pages, from 0 to num_pages - 1; others
   may be anything. Returns whether all that holds; if not, sets the error. */
int32_t varlen_check_block_table(const int32_t *table, int64_t rows,
                                 int64_t columns, int64_t row_stride,
                                 int64_t num_pages, int64_t page_rows,
                                 const void *seqused_k, int64_t seqused_k_size,
                                 int32_t index_bytes);

/* New rows of keys and values that follow one another in a page of a cache. */
typedef struct varlen_append_run {
  int64_t sequence;
  int64_t position; /* of the first row in the sequence */
  int64_t row;      /* packed index of the first row */
  int64_t rows;     /* number of rows, 1..VARLEN_MAX_RUN */
  int64_t page;
  int64_t page_row; /* of the first row in the page */
} varlen_append_run;
#define VARLEN_MAX_RUN 64

/* Checks where an append writes, then makes a list of runs, ordered by where
   these are in the cache.

   cu has N + 1 entries for N sequences, whose new rows are packed by it;
   seqused_k says for each how many rows it has in the cache before them. table,
   N x columns and table_stride entries from one row to the next, has the pages
   of each sequence; null: page s is that of sequence s. Rows of k and v, pages
   of k_cache and v_cache and rows of a page of each are the same numbers, and
   so are those of the scales of quantised caches, negative if there are none.
   cos_rows and sin_rows are at least as many as the positions of new rows,
   negative if there are no tables. No two entries are one page that is written.

   Returns the number of runs and stores the list, which `varlen_free_tiles` or
   free releases. On bad input, or without memory, returns -1, stores null and
   sets the error. */
int64_t varlen_append_runs(
    const void *cu, int64_t cu_size, const void *seqused_k,
    int64_t seqused_k_size, int32_t index_bytes, const int32_t *table,
    int64_t table_rows, int64_t columns, int64_t table_stride, int64_t k_rows,
    int64_t v_rows, int64_t k_pages, int64_t v_pages, int64_t k_page_rows,
    int64_t v_page_rows, int64_t k_scale_pages, int64_t k_scale_page_rows,
    int64_t v_scale_pages, int64_t v_scale_page_rows, int64_t cos_rows,
    int64_t sin_rows, varlen_append_run **runs);

/* Buffers of a compiled function, aligned to 64 bytes, in the place of malloc
   and free; null if there is no memory. varlen_free releases lists of tiles,
   too. */
void *varlen_allocate(int64_t bytes);
void varlen_free(void *memory);

/* Extents of an attention that are compared at run time: `tensor` has as many
   rows or heads as `source`, or its head_dim; a sink has an entry for each
   head. The rule of q's heads says that these are a positive multiple of those
   of k, the rule of a tensor with itself that its head_dim is positive. A table
   of a score has entries in place of a head_dim. K_PAGE and V_PAGE are one page
   of k and of v, and K_CACHE_PAGE and its like of what an append writes to; the
   rule of one with itself says that it has a row. */
#define VARLEN_EXTENT_RULE(tensor, extent, source)                             \
  (1 + (tensor) % 16 + 16 * (extent) + 64 * ((source) % 16) +                  \
   1024 * ((tensor) / 16) + 4096 * ((source) / 16))
enum {
  VARLEN_EXTENT_ROWS,
  VARLEN_EXTENT_HEADS,
  VARLEN_EXTENT_HEAD_DIM,
  VARLEN_EXTENT_PAGES
};
enum {
  VARLEN_TENSOR_Q,
  VARLEN_TENSOR_K,
  VARLEN_TENSOR_V,
  VARLEN_TENSOR_SINK,
  VARLEN_TENSOR_OUT,
  VARLEN_TENSOR_LSE,
  VARLEN_TENSOR_DOUT,
  VARLEN_TENSOR_DLSE,
  VARLEN_TENSOR_DQ,
  VARLEN_TENSOR_DK,
  VARLEN_TENSOR_DV,
  VARLEN_TENSOR_DSINK,
  VARLEN_TENSOR_CAPTURE,
  VARLEN_TENSOR_DCAPTURE,
  VARLEN_TENSOR_K_PAGE,
  VARLEN_TENSOR_V_PAGE,
  VARLEN_TENSOR_TQ,
  VARLEN_TENSOR_TK,
  VARLEN_TENSOR_TV,
  VARLEN_TENSOR_TSINK,
  VARLEN_TENSOR_TOUT,
  VARLEN_TENSOR_TLSE,
  VARLEN_TENSOR_TCAPTURE,
  VARLEN_TENSOR_DTOUT,
  VARLEN_TENSOR_DTLSE,
  VARLEN_TENSOR_K_SCALE,
  VARLEN_TENSOR_V_SCALE,
  VARLEN_TENSOR_K_CACHE,
  VARLEN_TENSOR_V_CACHE,
  VARLEN_TENSOR_K_CACHE_PAGE,
  VARLEN_TENSOR_V_CACHE_PAGE,
  VARLEN_TENSOR_K_SCALE_PAGE,
  VARLEN_TENSOR_V_SCALE_PAGE
};

/* Sets the error of a rule that does not hold: the extent is `value`, what it
   is compared with `bound`. */
void varlen_extent_error(int64_t rule, int64_t value, int64_t bound);

/* Does the items lo..hi-1 of `context`. */
typedef void (*varlen_range_fn)(void *context, int64_t lo, int64_t hi,
                                void *workspace);

/* Does the items 0..n-1, each once, in any order, on our threads and the
   calling one; returns when all are done. `workspace` is aligned to 64 bytes
   and the thread's own; its contents are undefined. A call inside an item runs
   on the thread it is made on. */
void varlen_parallel_for(int64_t n, int64_t workspace_bytes, varlen_range_fn fn,
                         void *context);

/* Threads that varlen_parallel_for uses, the calling one included. 0 or less:
   as many as the process may run on, which is the default. */
void varlen_set_num_threads(int64_t threads);
int64_t varlen_get_num_threads(void);

/* Lets the host bring its own threads: varlen_parallel_for calls `parallel_for`
   with its own arguments. Null restores ours. */
typedef void (*varlen_parallel_for_fn)(int64_t n, int64_t workspace_bytes,
                                       varlen_range_fn fn, void *context);
void varlen_set_parallel_for(varlen_parallel_for_fn parallel_for);

/* The first error of the calling thread since the last clear, or null. */
const char *varlen_last_error(void);
void varlen_clear_error(void);

#ifdef __cplusplus
}
#endif

#endif /* VARLEN_RUNTIME_RUNTIME_H */
