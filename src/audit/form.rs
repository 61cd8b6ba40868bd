//! The JSON form as it stands in a file, before any name is looked up.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

use crate::protocol::application::Quantities;

/// The value of `format`: what these files are told by.
pub(super) const FORMAT: &str = "cutline-audit-1";

/// What an amount is called where a bare number is given.
const UNNAMED: &str = "quantity";

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) format: String,
    pub(super) topology: Option<Graph>,
    pub(super) expected: Option<Amounts>,
    pub(super) snapshots: Vec<Told>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Graph {
    pub(super) processes: Vec<String>,
    pub(super) channels: Vec<String>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Told {
    pub(super) name: Option<String>,
    pub(super) expected: Option<Amounts>,
    pub(super) processes: Named<ToldState>,
    #[serde(default)]
    pub(super) channels: Named<ToldContent>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToldState {
    pub(super) holds: Option<Amounts>,
    #[serde(default)]
    pub(super) sent: Named<u64>,
    #[serde(default)]
    pub(super) received: Named<u64>,
    pub(super) clock: Option<Named<u64>>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToldContent {
    pub(super) messages: Option<Vec<ToldMessage>>,
    pub(super) holds: Option<Amounts>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToldMessage {
    pub(super) number: Option<u64>,
    pub(super) carries: Option<Amounts>,
}

/// Amounts by name; or a bare number, where there is only one quantity.
#[derive(Debug)]
pub(super) struct Amounts(pub(super) Quantities);

impl<'de> Deserialize<'de> for Amounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Amounts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number, or an object of whole numbers by name")
            }

            fn visit_i64<E: de::Error>(self, amount: i64) -> Result<Amounts, E> {
                Ok(Amounts([(UNNAMED.to_owned(), amount)].into()))
            }

            fn visit_u64<E: de::Error>(self, amount: u64) -> Result<Amounts, E> {
                let amount = i64::try_from(amount);
                self.visit_i64(amount.map_err(|_| E::custom("an amount of 2^63 or more"))?)
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Amounts, M::Error> {
                unique(map).map(Amounts)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Values by name, none of which is given twice: plain JSON readers let the last one win.
#[derive(Debug)]
pub(super) struct Named<T>(pub(super) BTreeMap<String, T>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Named<T>, M::Error> {
                unique(map).map(Named)
            }
        }
        deserializer.deserialize_map(Object(PhantomData))
    }
}

fn unique<'de, T: Deserialize<'de>, M: MapAccess<'de>>(
    mut map: M,
) -> Result<BTreeMap<String, T>, M::Error> {
    let mut values = BTreeMap::new();
    while let Some(name) = map.next_key::<String>()? {
        if values.contains_key(&name) {
            return Err(de::Error::custom(format!("'{name}' is given twice")));
        }
        let value = map.next_value()?;
        values.insert(name, value);
    }
    Ok(values)
}
