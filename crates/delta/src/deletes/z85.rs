//! Z85: four bytes as five printable characters, as ZeroMQ's RFC 32 spells them.
//!
//! Only whole groups of five are text. A library's own padding with `#` is not part of the format: shorter data are
//! padded to a multiple of four before encoding, and the reader knows the true length from elsewhere.

const ALPHABET: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

const VALUES: [Option<u8>; 256] = values();

const fn values() -> [Option<u8>; 256] {
    let mut values = [None; 256];
    let mut index = 0u8;
    while index < 85 {
        values[ALPHABET[index as usize] as usize] = Some(index);
        index += 1;
    }
    values
}

/// The bytes of `text`; its length must be a multiple of five.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let padded = text.ends_with('#');
    groups(text)
        .map_err(|it| if padded { format!("{it}; `#` as padding at its end is not part of the format") } else { it })
}

/// The text of `bytes`, whose length is a multiple of four.
pub(super) fn encode(bytes: &[u8]) -> String {
    let digit = |number: u32, power: u32| char::from(ALPHABET[(number / 85u32.pow(power) % 85) as usize]);
    let (groups, _) = bytes.as_chunks::<4>();
    let numbers = groups.iter().map(|it| u32::from_be_bytes(*it));
    numbers.flat_map(|it| (0..5).rev().map(move |power| digit(it, power))).collect()
}

fn groups(text: &str) -> Result<Vec<u8>, String> {
    if !text.len().is_multiple_of(5) {
        return Err(format!("Z85 text of {} characters: not a multiple of 5", text.len()));
    }
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    for group in text.as_bytes().chunks_exact(5) {
        let mut number = 0u64;
        for character in group {
            let value = VALUES[usize::from(*character)].ok_or_else(|| "not Z85 text".to_owned())?;
            number = number * 85 + u64::from(value);
        }
        let number = u32::try_from(number).map_err(|_| "not Z85 text: a group is larger than 32 bits".to_owned())?;
        bytes.extend(number.to_be_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        assert_eq!(decode("HelloWorld").unwrap(), [0x86, 0x4f, 0xd2, 0x6f, 0xb5, 0x59, 0xf7, 0x5b]);
    }

    #[test]
    fn what_is_not_z85_is_refused() {
        for (text, reason) in [
            ("Hello1", "not a multiple of 5"),
            ("Hell ", "not Z85 text"),
            ("Héll", "not Z85 text"),
            ("#####", "larger than 32 bits; `#` as padding at its end is not part of the format"),
            ("Hello1##", "not a multiple of 5; `#` as padding at its end is not part of the format"),
            ("\"\\~,;", "not Z85 text"),
        ] {
            assert!(decode(text).unwrap_err().contains(reason), "{text}");
        }
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(groups in proptest::collection::vec(any::<[u8; 4]>(), 0..40)) {
            let bytes = groups.concat();
            prop_assert_eq!(decode(&encode(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,60}") {
            let _ = decode(&text);
        }
    }
}
