//! Allocation by layout: which function of the library gives a block its alignment at the least cost, and keeps it.

use core::alloc::Layout;

use crate::raw::{self, c_void, mi_heap_t};

/// Does every block of this size have this alignment? Blocks of up to 8 bytes are aligned to 8 bytes, larger ones to 16; but one that
/// is guarded with the option `GuardedPrecise` begins where it has to in order to end with an OS page.
#[inline]
pub(crate) fn is_natural(size: usize, align: usize) -> bool {
    align == 1 || (align <= 16 && size != 0 && size & (align - 1) == 0)
}

#[inline]
pub(crate) fn alloc(layout: Layout) -> *mut u8 {
    let (size, align) = (layout.size(), layout.align());
    // Safety: any size and any power of two may be asked for.
    unsafe {
        if is_natural(size, align) {
            raw::mi_malloc(size).cast()
        } else {
            raw::mi_malloc_aligned(size, align).cast()
        }
    }
}

#[inline]
pub(crate) fn alloc_zeroed(layout: Layout) -> *mut u8 {
    let (size, align) = (layout.size(), layout.align());
    // Safety: as above.
    unsafe {
        if is_natural(size, align) {
            raw::mi_zalloc(size).cast()
        } else {
            raw::mi_zalloc_aligned(size, align).cast()
        }
    }
}

/// # Safety
/// `block` is a block of this layout, from this allocator. Unless the result is NULL, it is gone.
#[inline]
pub(crate) unsafe fn realloc(block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    let align = layout.align();
    // Safety: by the caller. A block that stays in place keeps its address, and so its alignment.
    unsafe {
        if is_natural(size, align) {
            raw::mi_realloc(block.cast(), size).cast()
        } else {
            raw::mi_realloc_aligned(block.cast(), size, align).cast()
        }
    }
}

/// Builds that check blocks also check the layout.
///
/// # Safety
/// `block` is a block of this layout, from this allocator, and is gone afterwards.
#[inline]
pub(crate) unsafe fn dealloc(block: *mut u8, layout: Layout) {
    let block: *mut c_void = block.cast();
    // Safety: by the caller.
    unsafe {
        if cfg!(any(feature = "secure", feature = "debug", feature = "debug_in_debug")) {
            raw::mi_free_size_aligned(block, layout.size(), layout.align());
        } else {
            raw::mi_free(block);
        }
    }
}

/// # Safety
/// The heap is alive.
#[inline]
pub(crate) unsafe fn heap_alloc(heap: *mut mi_heap_t, layout: Layout) -> *mut u8 {
    let (size, align) = (layout.size(), layout.align());
    // Safety: by the caller.
    unsafe {
        if is_natural(size, align) {
            raw::mi_heap_malloc(heap, size).cast()
        } else {
            raw::mi_heap_malloc_aligned(heap, size, align).cast()
        }
    }
}

/// # Safety
/// The heap is alive.
#[inline]
pub(crate) unsafe fn heap_alloc_zeroed(heap: *mut mi_heap_t, layout: Layout) -> *mut u8 {
    let (size, align) = (layout.size(), layout.align());
    // Safety: by the caller.
    unsafe {
        if is_natural(size, align) {
            raw::mi_heap_zalloc(heap, size).cast()
        } else {
            raw::mi_heap_zalloc_aligned(heap, size, align).cast()
        }
    }
}

/// # Safety
/// The heap is alive; the block as for [`realloc`].
#[inline]
pub(crate) unsafe fn heap_realloc(
    heap: *mut mi_heap_t,
    block: *mut u8,
    layout: Layout,
    size: usize,
) -> *mut u8 {
    let align = layout.align();
    // Safety: by the caller.
    unsafe {
        if is_natural(size, align) {
            raw::mi_heap_realloc(heap, block.cast(), size).cast()
        } else {
            raw::mi_heap_realloc_aligned(heap, block.cast(), size, align).cast()
        }
    }
}
