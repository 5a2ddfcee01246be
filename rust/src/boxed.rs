use core::alloc::Layout;
use core::borrow::{Borrow, BorrowMut};
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};

use crate::{block, HeapRef};

/// A value in a block of a heap: what `Box` is for the global allocator. [`HeapRef::boxed`] and its relatives make it.
///
/// Dropping it drops the value and frees the block, on any thread. It borrows its heap, so that the heap is not dropped, and the
/// blocks with it, while there is a box:
///
/// ```compile_fail,E0505
/// # use mimalloc_compat::Heap;
/// let heap = Heap::new().unwrap();
/// let number = heap.boxed(1).unwrap();
/// drop(heap);
/// println!("{number}");
/// ```
///
/// It may go to another thread if its value may:
///
/// ```compile_fail,E0277
/// # use mimalloc_compat::Heap;
/// let heap = Heap::new().unwrap();
/// let local = heap.boxed(std::rc::Rc::new(1)).unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(move || println!("{local}"));
/// });
/// ```
///
/// A value whose box was forgotten is not dropped when the heap is; its memory is freed. Therefore a box cannot be pinned.
pub struct HeapBox<'heap, T: ?Sized> {
    value: NonNull<T>,
    _owns: PhantomData<(&'heap HeapRef, T)>,
}

// Safety: it owns its value as a Box does, and any thread may free a block.
unsafe impl<T: ?Sized + Send> Send for HeapBox<'_, T> {}
// Safety: a shared box gives shared access to its value only.
unsafe impl<T: ?Sized + Sync> Sync for HeapBox<'_, T> {}

impl<'heap, T: ?Sized> HeapBox<'heap, T> {
    /// # Safety
    /// `value` is valid and owned by nobody else; it is in a block of its own of the heap, or has size 0.
    pub(crate) unsafe fn from_raw(value: NonNull<T>) -> Self {
        Self { value, _owns: PhantomData }
    }

    /// Gives up the box and keeps the value: a reference to it, which lives as long as the heap is borrowed. The value is not
    /// dropped, and its block is freed with the heap.
    ///
    /// ```
    /// # use mimalloc_compat::Heap;
    /// let heap = Heap::new().unwrap();
    /// let words: Vec<&mut str> =
    ///     ["a", "b"].iter().map(|word| heap.boxed_str(word).unwrap().leak()).collect();
    /// assert_eq!(words, ["a", "b"]);
    /// ```
    pub fn leak(self) -> &'heap mut T {
        let mut this = mem::ManuallyDrop::new(self);
        // Safety: the value is valid, nobody else has it, and nobody frees it while the heap is borrowed.
        unsafe { this.value.as_mut() }
    }
}

impl<T> HeapBox<'_, T> {
    /// Frees the block and returns the value.
    pub fn into_inner(self) -> T {
        let this = mem::ManuallyDrop::new(self);
        // Safety: the value is read once, and the block is freed without dropping it.
        unsafe {
            let value = ptr::read(this.value.as_ptr());
            free(this.value.cast(), Layout::new::<T>());
            value
        }
    }
}

/// # Safety
/// A block of this layout, which is gone afterwards. There is none if the size is 0.
unsafe fn free(block: NonNull<u8>, layout: Layout) {
    if layout.size() != 0 {
        // Safety: by the caller.
        unsafe { block::dealloc(block.as_ptr(), layout) }
    }
}

impl<T: ?Sized> Drop for HeapBox<'_, T> {
    fn drop(&mut self) {
        /// Frees the block also if the value's drop panics.
        struct Free(NonNull<u8>, Layout);
        impl Drop for Free {
            fn drop(&mut self) {
                // Safety: the value is gone, and the block is used no more.
                unsafe { free(self.0, self.1) }
            }
        }
        let _free = Free(self.value.cast(), Layout::for_value(&**self));
        // Safety: it is dropped once, here.
        unsafe { ptr::drop_in_place(self.value.as_ptr()) }
    }
}

impl<T: ?Sized> Deref for HeapBox<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // Safety: the value is valid while the box exists.
        unsafe { self.value.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for HeapBox<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // Safety: the same, and the box is borrowed exclusively.
        unsafe { self.value.as_mut() }
    }
}

impl<T: ?Sized> AsRef<T> for HeapBox<'_, T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: ?Sized> AsMut<T> for HeapBox<'_, T> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: ?Sized> Borrow<T> for HeapBox<'_, T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: ?Sized> BorrowMut<T> for HeapBox<'_, T> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for HeapBox<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for HeapBox<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
