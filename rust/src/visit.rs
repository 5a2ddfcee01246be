use core::marker::PhantomData;

use crate::callback::without_unwinding;
use crate::raw::{self, c_void, mi_heap_area_t, mi_heap_t};
use crate::HeapRef;

/// A range of memory with blocks of one size, as a visit shows it.
#[derive(Clone, Copy, Debug)]
pub struct Area<'visit> {
    area: *const mi_heap_area_t,
    _visit: PhantomData<&'visit mi_heap_area_t>,
}

impl Area<'_> {
    fn area(&self) -> &mi_heap_area_t {
        // Safety: the library shows it for the time of the visit.
        unsafe { &*self.area }
    }

    /// Where the blocks begin.
    pub fn start(&self) -> *const u8 {
        self.area().blocks.cast()
    }

    /// Bytes that the blocks may occupy.
    pub fn reserved(&self) -> usize {
        self.area().reserved
    }

    /// Bytes that are usable at present.
    pub fn committed(&self) -> usize {
        self.area().committed
    }

    /// Blocks in use.
    pub fn used(&self) -> usize {
        self.area().used
    }

    /// Bytes of a block that a program can use.
    pub fn block_size(&self) -> usize {
        self.area().block_size
    }

    /// Bytes from a block to the next.
    pub fn full_block_size(&self) -> usize {
        self.area().full_block_size
    }
}

/// What a visit comes to: an area, and then each of its blocks in use, with its size.
#[derive(Clone, Copy, Debug)]
pub enum Visit<'visit> {
    /// An area.
    Area(Area<'visit>),
    /// A block in use: its area, its address, and the size that a program can use.
    Block(Area<'visit>, *const u8, usize),
}

type Visitor<'a> = &'a mut dyn FnMut(Visit<'_>) -> bool;

unsafe extern "C" fn visit(
    _heap: *const mi_heap_t,
    area: *const mi_heap_area_t,
    block: *mut c_void,
    size: usize,
    arg: *mut c_void,
) -> bool {
    // Safety: `arg` is the visitor of `visit_blocks`, which waits.
    let visitor = unsafe { &mut *arg.cast::<Visitor<'_>>() };
    let area = Area { area, _visit: PhantomData };
    without_unwinding(|| {
        visitor(if block.is_null() {
            Visit::Area(area)
        } else {
            Visit::Block(area, block.cast(), size)
        })
    })
}

impl HeapRef {
    /// Visits the areas of this heap and, with `blocks`, its blocks in use, until the visitor returns false. Returns whether it
    /// never did. Takes time in proportion to the blocks of the heap, free ones included, and to the pages of the process.
    ///
    /// ```
    /// use mimalloc_compat::{Heap, Visit};
    ///
    /// let heap = Heap::new().unwrap();
    /// let _a = heap.boxed([0u8; 100]).unwrap();
    /// let mut bytes = 0;
    /// // Safety: this is the only thread, and the closure does not use the heap.
    /// unsafe {
    ///     heap.visit(true, |what| {
    ///         if let Visit::Block(_, _, size) = what {
    ///             bytes += size;
    ///         }
    ///         true
    ///     });
    /// }
    /// assert!((100..200).contains(&bytes));
    /// ```
    ///
    /// # Safety
    /// Meanwhile, nobody allocates from this heap or frees its blocks: no other thread, and not the visitor.
    pub unsafe fn visit(&self, blocks: bool, mut visitor: impl FnMut(Visit<'_>) -> bool) -> bool {
        let mut visitor: Visitor<'_> = &mut visitor;
        let arg: *mut Visitor<'_> = &mut visitor;
        // Safety: by the caller; the heap is alive, and the visitor lives until the end of the visit.
        unsafe { raw::mi_heap_visit_blocks(self.as_raw(), blocks, Some(visit), arg.cast()) }
    }
}
