//! What the crates parquet and arrow-ipc use of the crate zstd, without C. It only decodes.

/// The functions over whole frames.
pub mod bulk {
    use std::io::{self, Cursor, ErrorKind};

    use ruzstd::decoding::FrameDecoder;

    /// Decodes frames.
    #[derive(Default)]
    pub struct Decompressor<'a>(std::marker::PhantomData<&'a ()>);

    impl Decompressor<'_> {
        pub fn new() -> io::Result<Self> {
            Ok(Self::default())
        }

        /// Decodes frames that have at most `most` bytes decoded.
        pub fn decompress(&mut self, data: &[u8], most: usize) -> io::Result<Vec<u8>> {
            let mut out = Vec::new();
            out.try_reserve_exact(most).map_err(|_| ErrorKind::OutOfMemory)?;
            out.resize(most, 0);
            let count = decode(data, &mut out)?;
            out.truncate(count);
            Ok(out)
        }

        /// Decodes frames into the room behind the cursor's position.
        pub fn decompress_to_buffer(
            &mut self,
            data: &[u8],
            out: &mut Cursor<&mut Vec<u8>>,
        ) -> io::Result<usize> {
            let start = usize::try_from(out.position()).map_err(io::Error::other)?;
            let buffer = out.get_mut();
            let most = buffer.capacity();
            buffer.resize(most, 0);
            let count = decode(data, &mut buffer[start..]);
            buffer.truncate(start + *count.as_ref().unwrap_or(&0));
            count
        }
    }

    fn decode(data: &[u8], out: &mut [u8]) -> io::Result<usize> {
        FrameDecoder::new().decode_all(data, out).map_err(io::Error::other)
    }

    /// Encodes nothing.
    pub struct Compressor<'a>(std::marker::PhantomData<&'a ()>);

    impl Compressor<'_> {
        pub fn new(_level: i32) -> io::Result<Self> {
            Ok(Self(std::marker::PhantomData))
        }

        pub fn compress_to_buffer(
            &mut self,
            _data: &[u8],
            _out: &mut Cursor<&mut Vec<u8>>,
        ) -> io::Result<usize> {
            Err(ErrorKind::Unsupported.into())
        }
    }
}

/// The functions that are near to C.
pub mod zstd_safe {
    /// Nothing: pages of Parquet and buffers of Arrow say how long they are decoded.
    pub fn get_frame_content_size(_data: &[u8]) -> Result<Option<u64>, ()> {
        Ok(None)
    }

    pub fn compress_bound(size: usize) -> usize {
        size
    }
}

/// The levels at which frames can be encoded: none here.
pub fn compression_level_range() -> std::ops::RangeInclusive<i32> {
    0..=0
}
