use core::alloc::{GlobalAlloc, Layout};

use crate::{block, process};

/// The allocator, for `#[global_allocator]`. It allocates from the default heap of the calling thread, which is the main heap
/// unless [`DeleteHeap::with_default`](crate::DeleteHeap::with_default) says otherwise.
///
/// Beyond what [`GlobalAlloc`] promises: a layout of size 0 gives a block like any other, which must be deallocated once; and a
/// block may be deallocated on any thread. With the feature `secure` or `debug`, a layout that is not that of the block is
/// reported ([`Error::Invalid`](crate::Error::Invalid)), and the block is not freed.
///
/// ```
/// use mimalloc_compat::MiMalloc;
/// use std::alloc::{GlobalAlloc, Layout};
///
/// let layout = Layout::from_size_align(1000, 64).unwrap();
/// unsafe {
///     let block = MiMalloc.alloc(layout);
///     assert!(!block.is_null() && block as usize % 64 == 0);
///     MiMalloc.dealloc(block, layout);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MiMalloc;

// Safety: blocks have the size and alignment of their layout, stay valid until they are deallocated, and nothing unwinds.
unsafe impl GlobalAlloc for MiMalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        block::alloc(layout)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // Safety: by the caller.
        unsafe { block::dealloc(block, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        block::alloc_zeroed(layout)
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Safety: by the caller.
        unsafe { block::realloc(block, layout, size) }
    }
}

impl MiMalloc {
    /// [`version`](crate::version), as a method.
    pub fn version(&self) -> u32 {
        process::version()
    }

    /// [`usable_size`](crate::usable_size), as a method.
    ///
    /// # Safety
    /// `block` is NULL or a live block of this allocator.
    pub unsafe fn usable_size(&self, block: *const u8) -> usize {
        // Safety: by the caller.
        unsafe { process::usable_size(block) }
    }
}
