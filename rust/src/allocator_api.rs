//! The trait `Allocator` of nightly compilers, by which containers take an allocator of their own.

use core::alloc::{AllocError, Allocator, Layout};
use core::ptr::NonNull;

use crate::{block, DeleteHeap, Heap, HeapRef, MiMalloc};

/// A block of at least this size. One of size 0 is no block, and is not deallocated.
fn slice(layout: Layout, block: impl FnOnce() -> *mut u8) -> Result<NonNull<[u8]>, AllocError> {
    let block = if layout.size() == 0 { layout.align() as *mut u8 } else { block() };
    NonNull::new(block).map(|b| NonNull::slice_from_raw_parts(b, layout.size())).ok_or(AllocError)
}

/// # Safety
/// As `Allocator::grow` and `shrink` want it; `resize` gives a block of the new size, with the alignment of the new layout.
unsafe fn resized(
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
    allocator: &impl Allocator,
    resize: impl FnOnce(*mut u8, Layout) -> *mut u8,
) -> Result<NonNull<[u8]>, AllocError> {
    if old.size() == 0 {
        return allocator.allocate(new);
    }
    if new.size() == 0 {
        // Safety: by the caller.
        unsafe { allocator.deallocate(block, old) };
        return slice(new, core::ptr::null_mut);
    }
    if block.as_ptr() as usize & (new.align() - 1) != 0 {
        // Safety: by the caller; the new block is another one.
        unsafe {
            let moved = allocator.allocate(new)?;
            let n = old.size().min(new.size());
            moved.cast::<u8>().as_ptr().copy_from_nonoverlapping(block.as_ptr(), n);
            allocator.deallocate(block, old);
            return Ok(moved);
        }
    }
    slice(new, || resize(block.as_ptr(), new))
}

/// `[grow shrink]` are those of the trait that one function serves. The last expression stands inside an `unsafe` block, the
/// caller's promise.
macro_rules! allocator {
    ($type:ty, $self:ident, [$($resize:ident)*], $alloc:expr, $alloc_zeroed:expr, $realloc:expr) => {
        // Safety: a block stays valid until it is deallocated or its heap is dropped, which owns or outlives the allocator.
        unsafe impl Allocator for $type {
            fn allocate(&$self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                slice(layout, || $alloc(layout))
            }

            fn allocate_zeroed(&$self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
                slice(layout, || $alloc_zeroed(layout))
            }

            unsafe fn deallocate(&$self, block: NonNull<u8>, layout: Layout) {
                if layout.size() != 0 {
                    // Safety: by the caller.
                    unsafe { block::dealloc(block.as_ptr(), layout) }
                }
            }

            $(unsafe fn $resize(
                &$self,
                block: NonNull<u8>,
                old: Layout,
                new: Layout,
            ) -> Result<NonNull<[u8]>, AllocError> {
                // Safety: by the caller.
                unsafe { resized(block, old, new, $self, $realloc) }
            })*
        }
    };
}

allocator!(MiMalloc, self, [grow shrink], block::alloc, block::alloc_zeroed, |b, new: Layout| block::realloc(
    b,
    new,
    new.size()
));

macro_rules! heap_allocator {
    ($type:ty) => {
        allocator!(
            $type,
            self,
            [grow shrink],
            |layout| unsafe { block::heap_alloc(self.as_raw(), layout) },
            |layout| unsafe { block::heap_alloc_zeroed(self.as_raw(), layout) },
            |b, new: Layout| block::heap_realloc(self.as_raw(), b, new, new.size())
        );
    };
}

heap_allocator!(HeapRef);
heap_allocator!(Heap);
heap_allocator!(DeleteHeap);
