//! Columns of tables, and the values that go into them.

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit numbers, read as signed ones.
    Integer,
    /// The same, with absent values.
    OptionalInteger,
    /// Floating-point numbers.
    Real,
    /// The same, with absent values.
    OptionalReal,
    /// UTF-8.
    Text,
    /// The same, with absent values.
    OptionalText,
    /// Bytes: identifiers of 128 bits.
    Bytes,
    /// Lists of such identifiers.
    Identifiers,
}

impl Kind {
    /// Whether values may be absent.
    pub(super) fn is_optional(self) -> bool {
        matches!(
            self,
            Self::OptionalInteger | Self::OptionalReal | Self::OptionalText
        )
    }

    /// Whether a value takes 8 bytes; others follow their length.
    pub(super) fn is_number(self) -> bool {
        matches!(
            self,
            Self::Integer | Self::OptionalInteger | Self::Real | Self::OptionalReal
        )
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: Kind,
}

impl Column {
    /// A column of 64-bit numbers.
    #[must_use]
    pub const fn integer(name: &'static str) -> Self {
        let kind = Kind::Integer;
        Self { name, kind }
    }

    /// A column of 64-bit numbers, with absent values.
    #[must_use]
    pub const fn optional(name: &'static str) -> Self {
        let kind = Kind::OptionalInteger;
        Self { name, kind }
    }

    /// A column of floating-point numbers.
    #[must_use]
    pub const fn real(name: &'static str) -> Self {
        let kind = Kind::Real;
        Self { name, kind }
    }

    /// A column of floating-point numbers, with absent values.
    #[must_use]
    pub const fn optional_real(name: &'static str) -> Self {
        let kind = Kind::OptionalReal;
        Self { name, kind }
    }

    /// A column of texts.
    #[must_use]
    pub const fn text(name: &'static str) -> Self {
        let kind = Kind::Text;
        Self { name, kind }
    }

    /// A column of texts, with absent values.
    #[must_use]
    pub const fn optional_text(name: &'static str) -> Self {
        let kind = Kind::OptionalText;
        Self { name, kind }
    }

    /// A column of identifiers.
    #[must_use]
    pub const fn bytes(name: &'static str) -> Self {
        let kind = Kind::Bytes;
        Self { name, kind }
    }

    /// A column of lists of identifiers.
    #[must_use]
    pub const fn identifiers(name: &'static str) -> Self {
        let kind = Kind::Identifiers;
        Self { name, kind }
    }
}

/// A value; its kind must be that of its column.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// For [`Kind::Integer`].
    Integer(u64),
    /// For [`Kind::OptionalInteger`].
    Optional(Option<u64>),
    /// For [`Kind::Real`].
    Real(f64),
    /// For [`Kind::OptionalReal`].
    OptionalReal(Option<f64>),
    /// For [`Kind::Text`].
    Text(&'a str),
    /// For [`Kind::OptionalText`].
    OptionalText(Option<&'a str>),
    /// For [`Kind::Bytes`].
    Bytes(&'a [u8]),
    /// For [`Kind::Identifiers`].
    Identifiers(&'a [[u8; 16]]),
}
