//! Checks a Parquet footer before the parser sees it.
//!
//! The footer is one Thrift struct in compact encoding. The parser reserves memory for some lists by their declared
//! length alone, so a few bytes could ask for gigabytes. This walk reads the whole structure without building it and
//! refuses lists longer than the bytes that are left, and nesting that no honest footer has.
//! Spec: Thrift compact protocol; parquet.thrift, `FileMetaData`.

const MAX_DEPTH: u32 = 32;

/// Fails with a reason unless every length in `footer`, the bytes between data and the footer's length, is covered by
/// bytes that follow it.
///
/// For every reader of footers, before it hands them to the Parquet crate: memory that cannot be had ends the process,
/// and no [`fence`](crate::fence) holds that.
pub fn check(footer: &[u8]) -> Result<(), String> {
    Walk { rest: footer }.structure(0)
}

struct Walk<'a> {
    rest: &'a [u8],
}

impl Walk<'_> {
    fn structure(&mut self, depth: u32) -> Result<(), String> {
        loop {
            let header = self.byte()?;
            let kind = header & 0x0f;
            if kind == 0 {
                return Ok(());
            }
            // A zero delta means that the field's id follows.
            if header >> 4 == 0 {
                self.varint()?;
            }
            // A boolean field's value is its type.
            if kind > 2 {
                self.value(kind, depth)?;
            }
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH}"));
        }
        match kind {
            1..=3 => self.byte().map(drop),
            4..=6 => self.varint().map(drop),
            7 => self.skip(8),
            8 => {
                let length = self.varint()?;
                self.skip(length)
            }
            9 | 10 => self.list(depth),
            11 => self.map(depth),
            12 => self.structure(depth + 1),
            13 => self.skip(16),
            _ => Err(format!("type {kind} does not exist")),
        }
    }

    fn list(&mut self, depth: u32) -> Result<(), String> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        self.fits(count)?;
        for _ in 0..count {
            self.value(header & 0x0f, depth + 1)?;
        }
        Ok(())
    }

    fn map(&mut self, depth: u32) -> Result<(), String> {
        let count = self.varint()?;
        self.fits(count)?;
        if count == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        for _ in 0..count {
            self.value(kinds >> 4, depth + 1)?;
            self.value(kinds & 0x0f, depth + 1)?;
        }
        Ok(())
    }

    fn fits(&self, count: u64) -> Result<(), String> {
        if count > self.rest.len() as u64 {
            return Err(format!("a list of {count} entries in {} bytes", self.rest.len()));
        }
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, String> {
        let (first, rest) = self.rest.split_first().ok_or("cut short")?;
        self.rest = rest;
        Ok(*first)
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number longer than 64 bits".to_owned())
    }

    fn skip(&mut self, count: u64) -> Result<(), String> {
        let count = usize::try_from(count).map_err(|it| it.to_string())?;
        self.rest = self.rest.get(count..).ok_or("cut short")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn lists_longer_than_the_bytes_left_are_refused() {
        // Field 4, a list of 2^31 structs, in a footer of eight bytes.
        let bomb = [0x49, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0x00];
        assert_eq!(check(&bomb).unwrap_err(), "a list of 2147483647 entries in 1 bytes");
    }

    #[test]
    fn depth_is_bounded() {
        assert_eq!(check(&[0x1c; 1 << 20]).unwrap_err(), "nested deeper than 32");
        assert_eq!(check(&[0x19; 1 << 20]).unwrap_err(), "nested deeper than 32");
    }

    #[test]
    fn honest_structures_pass() {
        assert_eq!(check(&[0x15, 0x02, 0x11, 0x18, 0x01, 0x61, 0x00]), Ok(()));
        assert_eq!(check(&[0x15, 0x02]).unwrap_err(), "cut short");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let _ = check(&bytes);
        }
    }
}
