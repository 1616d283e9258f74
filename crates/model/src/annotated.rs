//! A function's samples by line of its source and by instruction.

/// What was sampled in a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotated {
    /// Its name.
    pub function: String,
    /// The file that it is in.
    pub module: String,
    /// The events that were sampled there; weights are by event.
    pub events: Vec<AnnotatedEvent>,
    /// By line, in the order of the source.
    pub lines: Vec<AnnotatedLine>,
    /// By instruction, in the order of the code.
    pub instructions: Vec<AnnotatedInstruction>,
    /// Why lines are missing, if they are.
    pub missing: Option<String>,
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnotatedEvent {
    /// Its name.
    pub name: String,
    /// Weight of all its samples.
    pub all: u64,
    /// Weight of those that end in the function.
    pub own: u64,
    /// The same with those that end in what it called.
    pub with_callees: u64,
    /// How many samples that are, whatever their weight.
    pub samples: u64,
}

/// A line of a function's source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnnotatedLine {
    /// The file and the line; none where debug information does not say.
    pub place: Option<(String, u32)>,
    /// Its text, if the file is there.
    pub text: Option<String>,
    /// Weight of the samples that end there.
    pub own: Vec<u64>,
    /// The same with those that end in what it called.
    pub with_callees: Vec<u64>,
}

/// An instruction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnnotatedInstruction {
    /// Bytes from the beginning of the function, or of the one in which it is inlined.
    pub into: u64,
    /// Its line.
    pub place: Option<(String, u32)>,
    /// Weight of the samples that end there.
    pub own: Vec<u64>,
}
