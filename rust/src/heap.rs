use core::alloc::Layout;
use core::fmt;
use core::mem::{self, ManuallyDrop};
use core::ops::Deref;
use core::ptr::{self, NonNull};

use crate::raw::{self, mi_heap_t};
use crate::stats::{Json, Stats};
use crate::{block, HeapBox};

/// A heap that is alive: what [`Heap`], [`DeleteHeap`] and the main heap have in common. It is only ever seen by reference.
///
/// Any thread may allocate from any heap at any time, and any thread may free any block, so a heap can be shared by threads:
///
/// ```
/// # use mimalloc_compat::Heap;
/// let heap = Heap::new().unwrap();
/// let boxes: Vec<_> = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..4).map(|n| scope.spawn(|| heap.boxed([1; 50]).unwrap())).collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).collect()
/// });
/// assert!(boxes.iter().all(|b| heap.contains(&**b)));
/// ```
#[repr(transparent)]
pub struct HeapRef(mi_heap_t);

// Safety: any thread may use a heap that is alive, also at the same time as others; what may not is unsafe, or takes `&mut`.
unsafe impl Sync for HeapRef {}
// Safety: no thread is special to a heap.
unsafe impl Send for HeapRef {}

impl HeapRef {
    /// The heap that all threads begin with. It never ends.
    pub fn main() -> &'static Self {
        // Safety: the main heap is alive at any time.
        unsafe { Self::from_raw(raw::mi_heap_main()) }
    }

    /// A heap of the C interface.
    ///
    /// # Safety
    /// `heap` is a heap, not NULL, and is neither deleted nor destroyed while the result is in use.
    pub unsafe fn from_raw<'heap>(heap: *mut mi_heap_t) -> &'heap Self {
        // Safety: by the caller. There are no fields behind the reference.
        unsafe { &*heap.cast() }
    }

    /// The heap for the C interface. It must not be deleted or destroyed.
    pub fn as_raw(&self) -> *mut mi_heap_t {
        (self as *const Self as *mut Self).cast()
    }

    /// Puts a value into a block of this heap. If there is no memory, the value comes back as the error. A value of size 0 takes no
    /// block.
    pub fn boxed<T>(&self, value: T) -> Result<HeapBox<'_, T>, T> {
        match self.place(Layout::new::<T>()) {
            // Safety: the place has the layout of the value, which is in it then.
            Some(place) => unsafe {
                let place = place.cast();
                ptr::write(place.as_ptr(), value);
                Ok(HeapBox::from_raw(place))
            },
            None => Err(value),
        }
    }

    /// Copies a text into a block of this heap; `None` if there is no memory.
    pub fn boxed_str(&self, text: &str) -> Option<HeapBox<'_, str>> {
        let bytes = self.boxed_copy(text.as_bytes())?.leak();
        // Safety: the bytes are those of a text, and the block is that of the box that was just given up.
        unsafe { Some(HeapBox::from_raw(NonNull::from(core::str::from_utf8_unchecked_mut(bytes)))) }
    }

    /// Copies a slice into a block of this heap; `None` if there is no memory.
    pub fn boxed_copy<T: Copy>(&self, values: &[T]) -> Option<HeapBox<'_, [T]>> {
        let place = self.place(Layout::for_value(values))?.cast::<T>();
        // Safety: the place has the layout of the slice, and both do not overlap.
        unsafe {
            ptr::copy_nonoverlapping(values.as_ptr(), place.as_ptr(), values.len());
            Some(box_of(place, values.len()))
        }
    }

    /// Makes a slice of `count` values, `make(0)`, `make(1)` and so on, in a block of this heap; `None` if there is no memory, or
    /// if no block can be so large. If `make` panics, the values so far are dropped and the block is freed.
    pub fn boxed_slice<T>(
        &self,
        count: usize,
        mut make: impl FnMut(usize) -> T,
    ) -> Option<HeapBox<'_, [T]>> {
        let layout = Layout::array::<T>(count).ok()?;
        let place = self.place(layout)?.cast::<T>();
        let mut begun = Begun { place, layout, count: 0 };
        while begun.count < count {
            let value = make(begun.count);
            // Safety: the place has room for `count` values.
            unsafe { ptr::write(place.as_ptr().add(begun.count), value) };
            begun.count += 1;
        }
        mem::forget(begun);
        // Safety: all values are there.
        unsafe { Some(box_of(place, count)) }
    }

    /// A block, or no block but an aligned address for a size of 0.
    fn place(&self, layout: Layout) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return NonNull::new(layout.align() as *mut u8);
        }
        self.allocate(layout)
    }

    /// Returns a block; `None` if there is no memory. A size of 0 gives a block like any other.
    ///
    /// The block is valid until [`deallocate`](Self::deallocate) frees it or the heap is destroyed, as a [`Heap`] is when it is
    /// dropped.
    pub fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // Safety: the heap is alive.
        NonNull::new(unsafe { block::heap_alloc(self.as_raw(), layout) })
    }

    /// [`allocate`](Self::allocate), with zeroed contents.
    pub fn allocate_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        // Safety: the heap is alive.
        NonNull::new(unsafe { block::heap_alloc_zeroed(self.as_raw(), layout) })
    }

    /// Resizes a block, as `GlobalAlloc::realloc` does; `None` if there is no memory, and then the block is as it was. A block that
    /// is not in this heap moves into it.
    ///
    /// # Safety
    /// `block` is a live block of this allocator, from any heap, and `layout` is its layout. `size`, rounded up to the alignment,
    /// is at most `isize::MAX`.
    pub unsafe fn reallocate(
        &self,
        block: NonNull<u8>,
        layout: Layout,
        size: usize,
    ) -> Option<NonNull<u8>> {
        // Safety: by the caller; the heap is alive.
        NonNull::new(unsafe { block::heap_realloc(self.as_raw(), block.as_ptr(), layout, size) })
    }

    /// Frees a block.
    ///
    /// # Safety
    /// `block` is a live block of this allocator, from any heap, and `layout` is its layout.
    pub unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // Safety: by the caller.
        unsafe { block::dealloc(block.as_ptr(), layout) }
    }

    /// Does the page of `address` belong to this heap? Any pointer is allowed.
    pub fn contains<T: ?Sized>(&self, address: *const T) -> bool {
        // Safety: the heap is alive, and any pointer is allowed.
        unsafe { raw::mi_heap_contains(self.as_raw(), address.cast()) }
    }

    /// [`collect`](crate::collect) for the calling thread's part of this heap.
    pub fn collect(&self, force: bool) {
        // Safety: the heap is alive.
        unsafe { raw::mi_heap_collect(self.as_raw(), force) }
    }

    /// The statistics of this heap: its blocks and pages. Takes time in proportion to the pages of the process.
    pub fn stats(&self) -> Stats {
        // Safety: the heap is alive.
        Stats::fill(|stats| unsafe { raw::mi_heap_stats_get(self.as_raw(), stats) })
    }

    /// The same as JSON; `None` if there is no memory for it.
    pub fn stats_json(&self) -> Option<Json> {
        // Safety: the heap is alive, and the text is a block of its own.
        unsafe { Json::from_raw(raw::mi_heap_stats_get_json(self.as_raw(), 0, ptr::null_mut())) }
    }

    /// Checks all pages and free blocks of this heap, and in builds that check blocks (`secure`, `debug`) also the ends of the blocks
    /// in use. Returns whether there is no error; otherwise each error is reported ([`Error::Overwritten`]). Takes time in
    /// proportion to the blocks of the heap and the pages of the process.
    ///
    /// # Safety
    /// Meanwhile, no other thread uses the heap, nor frees a block of it.
    ///
    /// [`Error::Overwritten`]: crate::Error::Overwritten
    pub unsafe fn check_unshared(&self) -> bool {
        // Safety: by the caller; the heap is alive.
        unsafe { raw::mi_heap_check(self.as_raw()) }
    }

    /// Makes this heap the default heap of the calling thread while `run` runs. If [`MiMalloc`](crate::MiMalloc) is the global
    /// allocator, all that `run` allocates on this thread is in this heap: vectors, strings, and what libraries allocate.
    ///
    /// [`DeleteHeap::with_default`] is the same without a condition.
    ///
    /// # Safety
    /// What was allocated inside, and not freed, is not used after the heap was destroyed. That includes what `run` leaves in
    /// statics and thread-local variables: buffers of the standard output, caches of libraries, the names of threads.
    pub unsafe fn with_default_unbound<R>(&self, run: impl FnOnce() -> R) -> R {
        struct Restore(*mut mi_heap_t);
        impl Drop for Restore {
            fn drop(&mut self) {
                // Safety: whoever has set the previous heap keeps it alive until after this call.
                unsafe { raw::mi_heap_set_default(self.0) };
            }
        }
        // Safety: the heap is alive until after `run`.
        let _restore = Restore(unsafe { raw::mi_heap_set_default(self.as_raw()) });
        run()
    }
}

/// # Safety
/// `place` has `count` values, in a block of a heap that lives as long as the result.
unsafe fn box_of<'heap, T>(place: NonNull<T>, count: usize) -> HeapBox<'heap, [T]> {
    // Safety: by the caller.
    unsafe {
        HeapBox::from_raw(NonNull::from(core::slice::from_raw_parts_mut(place.as_ptr(), count)))
    }
}

/// The values of a slice that is being made.
struct Begun<T> {
    place: NonNull<T>,
    layout: Layout,
    count: usize,
}

impl<T> Drop for Begun<T> {
    fn drop(&mut self) {
        // Safety: these values exist, and nobody else has the block.
        unsafe {
            ptr::drop_in_place(ptr::slice_from_raw_parts_mut(self.place.as_ptr(), self.count));
            if self.layout.size() != 0 {
                block::dealloc(self.place.as_ptr().cast(), self.layout);
            }
        }
    }
}

impl fmt::Debug for HeapRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Heap").field(&self.as_raw()).finish()
    }
}

/// A heap that is destroyed when it is dropped: all its blocks are freed at once, in time in proportion to its pages, not to its
/// blocks. Values in them are not dropped.
///
/// [`HeapBox`]es borrow the heap, so that none outlives it. The methods for allocation are those of [`HeapRef`].
///
/// ```
/// use mimalloc_compat::Heap;
/// use std::alloc::Layout;
///
/// let heap = Heap::new().expect("there is memory");
/// for _ in 0..10_000 {
///     heap.allocate(Layout::new::<[u64; 8]>()).expect("there is memory");
/// }
/// assert_eq!(heap.stats().blocks_in_use(), 10_000);
/// drop(heap); // frees all of them
/// ```
#[derive(Debug)]
pub struct Heap(&'static HeapRef); // alive as long as this is

/// A heap that is deleted when it is dropped: its blocks stay valid, and belong to the main heap from then on.
///
/// Its boxes borrow nothing. What it is good for: to see what a part of a program allocates ([`HeapRef::stats`]), and to keep
/// apart what is freed at different times.
///
/// ```
/// use mimalloc_compat::DeleteHeap;
///
/// let heap = DeleteHeap::new().expect("there is memory");
/// let kept = heap.boxed(42).expect("there is memory");
/// drop(heap);
/// assert_eq!(*kept, 42);
/// ```
#[derive(Debug)]
pub struct DeleteHeap(&'static HeapRef); // alive as long as this is

/// A new heap; `None` if there is no memory.
fn new_heap() -> Option<&'static HeapRef> {
    // Safety: the heap is alive until its owner ends it.
    NonNull::new(unsafe { raw::mi_heap_new() })
        .map(|heap| unsafe { HeapRef::from_raw(heap.as_ptr()) })
}

impl Heap {
    /// A new, empty heap; `None` if there is no memory. Takes constant time.
    pub fn new() -> Option<Self> {
        new_heap().map(Self)
    }

    /// Checks the heap: [`HeapRef::check_unshared`], when no other thread can use it. Blocks that were taken by
    /// [`HeapRef::allocate`] may not be freed meanwhile either.
    pub fn check(&mut self) -> bool {
        // Safety: nobody else has a reference or a box; blocks without a box are freed by unsafe functions only.
        unsafe { self.check_unshared() }
    }

    /// Keeps the blocks: the heap is deleted, not destroyed.
    pub fn into_deleting(self) -> DeleteHeap {
        DeleteHeap(ManuallyDrop::new(self).0)
    }
}

impl DeleteHeap {
    /// A new, empty heap; `None` if there is no memory. Takes constant time.
    pub fn new() -> Option<Self> {
        new_heap().map(Self)
    }

    /// [`HeapRef::boxed`], with a box that does not depend on the heap.
    pub fn boxed<T>(&self, value: T) -> Result<HeapBox<'static, T>, T> {
        self.0.boxed(value)
    }

    /// [`HeapRef::boxed_str`], with a box that does not depend on the heap.
    pub fn boxed_str(&self, text: &str) -> Option<HeapBox<'static, str>> {
        self.0.boxed_str(text)
    }

    /// [`HeapRef::boxed_copy`], with a box that does not depend on the heap.
    pub fn boxed_copy<T: Copy>(&self, values: &[T]) -> Option<HeapBox<'static, [T]>> {
        self.0.boxed_copy(values)
    }

    /// [`HeapRef::boxed_slice`], with a box that does not depend on the heap.
    pub fn boxed_slice<T>(
        &self,
        count: usize,
        make: impl FnMut(usize) -> T,
    ) -> Option<HeapBox<'static, [T]>> {
        self.0.boxed_slice(count, make)
    }

    /// Makes this heap the default heap of the calling thread while `run` runs. If [`MiMalloc`](crate::MiMalloc) is the global
    /// allocator, all that `run` allocates on this thread is in this heap.
    ///
    /// ```
    /// use mimalloc_compat::{DeleteHeap, MiMalloc};
    ///
    /// #[global_allocator]
    /// static GLOBAL: MiMalloc = MiMalloc;
    ///
    /// let request = DeleteHeap::new().expect("there is memory");
    /// let answer = request.with_default(|| "a request".split(' ').rev().collect::<Vec<_>>().join(" "));
    /// assert!(request.contains(answer.as_ptr()));
    /// println!("{} bytes are left of the request", request.stats().bytes_in_use());
    /// ```
    pub fn with_default<R>(&self, run: impl FnOnce() -> R) -> R {
        // Safety: this heap is never destroyed, so its blocks stay valid.
        unsafe { self.with_default_unbound(run) }
    }
}

macro_rules! owner {
    ($heap:ident, $end:ident) => {
        impl Deref for $heap {
            type Target = HeapRef;
            fn deref(&self) -> &HeapRef {
                self.0
            }
        }

        impl Drop for $heap {
            fn drop(&mut self) {
                // Safety: it was alive until now, and nobody has a reference to it.
                unsafe { raw::$end(self.as_raw()) }
            }
        }
    };
}

owner!(Heap, mi_heap_destroy);
owner!(DeleteHeap, mi_heap_delete);
