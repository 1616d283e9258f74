//! What one kind of analysis found, as a part of a document: `{"tuning": {…}}`.

use super::Kind;
use serde::de::{DeserializeOwned, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// The evidence of a document of one kind.
pub trait Evidence {
    /// The kind of such documents, and the name of the part.
    const KIND: Kind;

    /// The answer in a sentence or two, where the evidence alone gives it; otherwise empty.
    fn verdict(&self) -> String {
        String::new()
    }

    /// Writes the part, and what belongs to it.
    ///
    /// # Errors
    /// When the serializer fails.
    fn write<M: SerializeMap>(&self, parts: &mut M) -> Result<(), M::Error>
    where
        Self: Serialize,
    {
        parts.serialize_entry(&Self::KIND, self)
    }
}

/// Writes evidence under its name.
pub(super) fn serialize<E: Evidence + Serialize, S: Serializer>(
    evidence: &E,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut parts = serializer.serialize_map(None)?;
    evidence.write(&mut parts)?;
    parts.end()
}

/// Reads the requested part and skips the others.
pub(super) fn deserialize<'de, E: Evidence + DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<E, D::Error> {
    deserializer.deserialize_map(Parts(PhantomData))
}

struct Parts<E>(PhantomData<E>);

impl<'de, E: Evidence + DeserializeOwned> Visitor<'de> for Parts<E> {
    type Value = E;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "evidence with a part {}", name::<E>())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut parts: A) -> Result<E, A::Error> {
        let mut found = None;
        while let Some(name) = parts.next_key::<Cow<'_, str>>()? {
            match Kind::named(&name) == Some(E::KIND) {
                true => found = Some(parts.next_value()?),
                false => drop(parts.next_value::<IgnoredAny>()?),
            }
        }
        found.ok_or_else(|| A::Error::custom(format_args!("the evidence lacks {}", name::<E>())))
    }
}

/// The part's name, in quotes.
fn name<E: Evidence>() -> String {
    serde_json::to_string(&E::KIND).unwrap_or_default()
}
