//! `by_run(run_id, weight)`: the sum of each run's weights, by the unit that the run belongs to.
//!
//! A query that grouped by stack and host would have a row for each pair, and a hash table of
//! millions of rows. Here the groups are the stacks, and each has a short list of units, which grows
//! at its end while one host's file after another is read.

use super::Identifier;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, Float64Array, ListArray, StructArray,
    UInt32Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type, UInt32Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The function, for one set of runs.
#[derive(Clone, Debug)]
pub struct ByRun {
    signature: Signature,
    units: Arc<HashMap<Identifier, u32>>,
}

impl ByRun {
    /// Sums for these runs, by the number of their unit; other runs do not count.
    pub fn new(units: HashMap<Identifier, u32>) -> Self {
        Self {
            signature: Signature::any(2, Volatility::Immutable),
            units: Arc::new(units),
        }
    }
}

impl PartialEq for ByRun {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.units, &other.units)
    }
}

impl Eq for ByRun {}

impl Hash for ByRun {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.units).hash(state);
    }
}

fn pair() -> Fields {
    Fields::from(vec![
        Field::new("unit", DataType::UInt32, false),
        Field::new("weight", DataType::Float64, false),
    ])
}

fn element() -> FieldRef {
    Arc::new(Field::new("item", DataType::Struct(pair()), false))
}

impl AggregateUDFImpl for ByRun {
    fn name(&self) -> &str {
        "by_run"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(element()))
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Single(Sums::new(&self.units))))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let list = DataType::List(element());
        Ok(vec![Arc::new(Field::new(args.name, list, true))])
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Sums::new(&self.units)))
    }
}

/// Sums by group and unit.
#[derive(Debug)]
struct Sums {
    units: Arc<HashMap<Identifier, u32>>,
    groups: Vec<Vec<(u32, f64)>>,
    pairs: usize,
}

impl Sums {
    fn new(units: &Arc<HashMap<Identifier, u32>>) -> Self {
        Self {
            units: Arc::clone(units),
            groups: Vec::new(),
            pairs: 0,
        }
    }

    fn add(&mut self, group: usize, unit: u32, weight: f64) {
        let list = &mut self.groups[group];
        match list.last_mut() {
            Some((last, sum)) if *last == unit => *sum += weight,
            _ => {
                // Units that come back make a list longer than there are units: summed before it
                // would have to grow.
                if list.len() >= 64 && list.len() == list.capacity() {
                    let before = list.len();
                    sum_up(list);
                    self.pairs -= before - list.len();
                }
                list.push((unit, weight));
                self.pairs += 1;
            }
        }
    }

    fn add_list(&mut self, group: usize, list: &ArrayRef) {
        let pairs = list.as_struct();
        let units = pairs.column(0).as_primitive::<UInt32Type>();
        let weights = pairs.column(1).as_primitive::<Float64Type>();
        for (&unit, &weight) in units.values().iter().zip(weights.values()) {
            self.add(group, unit, weight);
        }
    }

    fn emit(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let mut groups = emit_to.take_needed(&mut self.groups);
        groups.iter_mut().for_each(sum_up);
        let emitted: usize = groups.iter().map(Vec::len).sum();
        self.pairs = self.groups.iter().map(Vec::len).sum();
        let mut units = Vec::with_capacity(emitted);
        let mut weights = Vec::with_capacity(emitted);
        let lengths: Vec<usize> = groups.iter().map(Vec::len).collect();
        for list in groups {
            units.extend(list.iter().map(|pair| pair.0));
            weights.extend(list.iter().map(|pair| pair.1));
        }
        lists(units, weights, lengths)
    }
}

/// One entry per unit, in their order.
fn sum_up(list: &mut Vec<(u32, f64)>) {
    list.sort_by_key(|pair| pair.0);
    list.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
}

fn lists(units: Vec<u32>, weights: Vec<f64>, lengths: Vec<usize>) -> Result<ArrayRef> {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt32Array::from(units)),
        Arc::new(Float64Array::from(weights)),
    ];
    let pairs = StructArray::try_new(pair(), columns, None)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(
        element(),
        offsets,
        Arc::new(pairs),
        None,
    )?))
}

/// The arguments as they are read.
fn arguments(values: &[ArrayRef]) -> Result<(BinaryViewArray, Float64Array)> {
    let [runs, weights] = values else {
        return exec_err!("by_run takes a run_id and a weight");
    };
    let runs = cast(runs, &DataType::BinaryView)?;
    let weights = cast(weights, &DataType::Float64)?;
    Ok((
        runs.as_binary_view().clone(),
        weights.as_primitive::<Float64Type>().clone(),
    ))
}

/// The unit of each row's run. Rows of one run follow each other.
fn each(
    known: &HashMap<Identifier, u32>,
    values: &[ArrayRef],
    filter: Option<&BooleanArray>,
    mut take: impl FnMut(usize, u32, f64),
) -> Result<()> {
    let (runs, weights) = arguments(values)?;
    let mut last: Option<(Identifier, Option<u32>)> = None;
    for row in 0..runs.len() {
        let is_left_out = filter.is_some_and(|keep| keep.is_null(row) || !keep.value(row));
        if is_left_out || runs.is_null(row) || weights.is_null(row) {
            continue;
        }
        let Ok(run) = Identifier::try_from(runs.value(row)) else {
            continue;
        };
        let unit = match last {
            Some((same, unit)) if same == run => unit,
            _ => known.get(&run).copied(),
        };
        last = Some((run, unit));
        if let Some(unit) = unit {
            take(row, unit, weights.value(row));
        }
    }
    Ok(())
}

impl GroupsAccumulator for Sums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups.resize_with(total_num_groups, Vec::new);
        let units = Arc::clone(&self.units);
        each(&units, values, opt_filter, |row, unit, weight| {
            self.add(group_indices[row], unit, weight);
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.emit(emit_to)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.emit(emit_to)?])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups.resize_with(total_num_groups, Vec::new);
        let states = values[0].as_list::<i32>();
        for (row, &group) in group_indices.iter().enumerate() {
            if states.is_valid(row) {
                self.add_list(group, &states.value(row));
            }
        }
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let (mut units, mut weights) = (Vec::new(), Vec::new());
        let mut lengths = vec![0; values[0].len()];
        each(&self.units, values, opt_filter, |row, unit, weight| {
            units.push(unit);
            weights.push(weight);
            lengths[row] = 1;
        })?;
        Ok(vec![lists(units, weights, lengths)?])
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<Vec<(u32, f64)>>()
            + self.pairs * 2 * size_of::<(u32, f64)>()
    }
}

/// The same without groups.
#[derive(Debug)]
struct Single(Sums);

impl Accumulator for Single {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = vec![0; values[0].len()];
        GroupsAccumulator::update_batch(&mut self.0, values, &rows, None, 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.groups.resize_with(1, Vec::new);
        ScalarValue::try_from_array(&self.0.emit(EmitTo::All)?, 0)
    }

    fn size(&self) -> usize {
        GroupsAccumulator::size(&self.0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![Accumulator::evaluate(self)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let rows = vec![0; states[0].len()];
        GroupsAccumulator::merge_batch(&mut self.0, states, &rows, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(runs: &[u8], weights: &[f64]) -> Vec<ArrayRef> {
        let ids: Vec<Identifier> = runs.iter().map(|&run| [run; 16]).collect();
        vec![
            Arc::new(BinaryViewArray::from_iter_values(ids)),
            Arc::new(Float64Array::from(weights.to_vec())),
        ]
    }

    fn read(lists: &ArrayRef) -> Vec<Vec<(u32, f64)>> {
        let lists = lists.as_list::<i32>();
        let one = |list: ArrayRef| {
            let pairs = list.as_struct();
            let units = pairs
                .column(0)
                .as_primitive::<UInt32Type>()
                .values()
                .to_vec();
            let weights = pairs
                .column(1)
                .as_primitive::<Float64Type>()
                .values()
                .to_vec();
            units.into_iter().zip(weights).collect()
        };
        lists
            .iter()
            .map(|list| list.map(one).unwrap_or_default())
            .collect()
    }

    #[test]
    fn partial_sums_in_any_order_make_the_whole() {
        let units = Arc::new(HashMap::from([([1; 16], 7), ([2; 16], 3), ([3; 16], 7)]));
        let mut first = Sums::new(&units);
        let batch = rows(&[1, 1, 2, 9], &[1.0, 2.0, 4.0, 99.0]);
        first.update_batch(&batch, &[0, 0, 1, 0], None, 2).unwrap();
        let mut second = Sums::new(&units);
        let batch = rows(&[3, 1], &[8.0, 16.0]);
        second.update_batch(&batch, &[0, 0], None, 1).unwrap();
        let mut whole = Sums::new(&units);
        let state = second.state(EmitTo::All).unwrap();
        whole.merge_batch(&state, &[0], 1).unwrap();
        let state = first.state(EmitTo::All).unwrap();
        whole.merge_batch(&state, &[0, 1], 2).unwrap();
        let converted = whole
            .convert_to_state(&rows(&[2, 9], &[32.0, 1.0]), None)
            .unwrap();
        whole.merge_batch(&converted, &[0, 0], 2).unwrap();
        let found = read(&whole.evaluate(EmitTo::All).unwrap());
        assert_eq!(found, [vec![(3, 32.0), (7, 27.0)], vec![(3, 4.0)]]);
    }

    #[test]
    fn units_that_come_back_do_not_lengthen_the_list() {
        let units = Arc::new(HashMap::from([([1; 16], 0), ([2; 16], 1)]));
        let mut sums = Sums::new(&units);
        sums.groups.push(Vec::new());
        for at in 0..10_000 {
            sums.add(0, at % 2, 1.0);
        }
        assert!(sums.groups[0].len() <= 128 && sums.pairs == sums.groups[0].len());
        let found = read(&sums.evaluate(EmitTo::All).unwrap());
        assert_eq!(found, [vec![(0, 5_000.0), (1, 5_000.0)]]);
    }
}
