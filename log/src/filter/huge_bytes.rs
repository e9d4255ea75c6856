//! Bytes that are read at random places, on huge pages where the system has them: with pages of 4 KiB nearly every read of a
//! filter of many megabytes misses the translation cache, which costs more than the cache line itself.

use std::ops::{Deref, DerefMut};

/// Less than this is an ordinary allocation: it fits no huge page.
#[cfg(target_os = "linux")]
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Zeroed at first.
pub(crate) enum HugeBytes {
    Allocated(Vec<u8>),
    #[cfg(target_os = "linux")]
    Mapped(memmap2::MmapMut),
}

impl HugeBytes {
    pub(crate) fn zeroed(bytes: usize) -> Self {
        #[cfg(target_os = "linux")]
        if bytes >= HUGE_PAGE_BYTES
            && let Ok(map) = memmap2::MmapMut::map_anon(bytes)
        {
            // Without huge pages it is slower and nothing else.
            let _ = map.advise(memmap2::Advice::HugePage);
            return Self::Mapped(map);
        }
        Self::Allocated(vec![0; bytes])
    }
}

impl Deref for HugeBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Allocated(bytes) => bytes,
            #[cfg(target_os = "linux")]
            Self::Mapped(bytes) => bytes,
        }
    }
}

impl DerefMut for HugeBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Allocated(bytes) => bytes,
            #[cfg(target_os = "linux")]
            Self::Mapped(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HugeBytes;

    #[test]
    fn bytes_of_all_sizes_are_zeroed_and_can_be_written() {
        for bytes in [0, 1, 64, (2 << 20) - 1, 2 << 20, (4 << 20) + 7] {
            let mut all = HugeBytes::zeroed(bytes);
            assert_eq!(all.len(), bytes);
            assert!(all.iter().all(|&byte| byte == 0));
            all.fill(7);
            assert!(all.iter().all(|&byte| byte == 7));
        }
    }
}
