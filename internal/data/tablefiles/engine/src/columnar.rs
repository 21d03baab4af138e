//! Parquet, and Arrow's files and streams: a few rows are in memory at a time.

use std::io::{BufReader, Read, Seek};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_json::writer::{LineDelimited, WriterBuilder};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::host::{Input, Output};
use crate::{Problem, Table, name_columns};

/// How many rows of Parquet are decoded at once.
const BATCH: usize = 1 << 10;

/// How many bytes are read ahead.
const AHEAD: usize = 64 << 10;

impl Length for Input {
    fn len(&self) -> u64 {
        self.size()
    }
}

impl ChunkReader for Input {
    type T = BufReader<Input>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::with_capacity(AHEAD, self.from(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if start.saturating_add(length as u64) > self.size() {
            return Err(ParquetError::EOF("a part lies behind the end of the file".to_owned()));
        }
        let mut data = vec![0; length];
        self.from(start).read_exact(&mut data)?;
        Ok(data.into())
    }
}

pub fn list_parquet(input: Input) -> Result<Vec<Table>, Problem> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(input)?;
    let rows = u64::try_from(builder.metadata().file_metadata().num_rows()).ok();
    Ok(vec![describe(builder.schema(), rows)])
}

pub fn write_parquet(input: Input) -> Result<(), Problem> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(input)?;
    let schema = builder.schema().clone();
    write(&schema, builder.with_batch_size(BATCH).build()?)
}

pub fn list_arrow(input: Input) -> Result<Vec<Table>, Problem> {
    Ok(vec![match open_arrow(input)? {
        Arrow::File(file) => describe(&file.schema(), None),
        Arrow::Stream(stream) => describe(&stream.schema(), None),
    }])
}

pub fn write_arrow(input: Input) -> Result<(), Problem> {
    match open_arrow(input)? {
        Arrow::File(file) => write(&file.schema(), file),
        Arrow::Stream(stream) => write(&stream.schema(), stream),
    }
}

enum Arrow {
    File(Box<FileReader<BufReader<Input>>>),
    Stream(Box<StreamReader<BufReader<Input>>>),
}

fn open_arrow(input: Input) -> Result<Arrow, Problem> {
    let mut reader = BufReader::with_capacity(AHEAD, input);
    let mut mark = [0; 6];
    reader.read_exact(&mut mark)?;
    reader.rewind()?;
    if &mark == b"ARROW1" {
        return Ok(Arrow::File(Box::new(FileReader::try_new(reader, None)?)));
    }
    Ok(Arrow::Stream(Box::new(StreamReader::try_new(reader, None)?)))
}

fn describe(schema: &Schema, rows: Option<u64>) -> Table {
    let kinds = schema.fields().iter().map(|field| show(field.data_type()));
    Table { rows, columns: unique(schema).into_iter().zip(kinds).collect(), ..Table::default() }
}

/// A type in the words of Arrow, without what a reader of rows does not see.
fn show(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        DataType::Dictionary(_, value) => show(value),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            format!("list of {}", show(item.data_type()))
        }
        DataType::Struct(fields) => {
            let names: Vec<_> = fields.iter().take(20).map(|f| f.name().as_str()).collect();
            format!("struct of {}", names.join(", "))
        }
        DataType::Timestamp(_, zone) => match zone {
            Some(zone) => format!("timestamp in {zone}"),
            None => "timestamp".to_owned(),
        },
        DataType::Map(_, _) => "map".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

fn unique(schema: &Schema) -> Vec<String> {
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
    name_columns(&names)
}

fn write(
    schema: &Schema,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
) -> Result<(), Problem> {
    let fields: Vec<Field> = std::iter::zip(schema.fields(), unique(schema))
        .map(|(field, name)| in_utc(field).with_name(name))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let mut writer =
        WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Output);

    for batch in batches {
        let batch = batch?;
        for start in (0..batch.num_rows()).step_by(BATCH) {
            let part = batch.slice(start, BATCH.min(batch.num_rows() - start));
            if part.num_columns() > 0 {
                let columns = std::iter::zip(part.columns(), schema.fields())
                    .map(|(column, field)| retype(column, field.data_type()))
                    .collect::<Result<_, _>>()?;
                writer.write(&RecordBatch::try_new(schema.clone(), columns)?)?;
            }
        }
    }
    writer.finish()?;
    Ok(())
}

/// A field whose moments are shown in UTC. Their numbers are those of UTC in any zone.
fn in_utc(field: &Field) -> Field {
    let inner = |field: &Arc<Field>| Arc::new(in_utc(field));
    let kind = match field.data_type() {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some("+00:00".into())),
        DataType::List(item) => DataType::List(inner(item)),
        DataType::LargeList(item) => DataType::LargeList(inner(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(inner(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(inner(entries), *is_sorted),
        other => other.clone(),
    };
    field.clone().with_data_type(kind)
}

/// The same values as an array of a type that in_utc has made.
fn retype(array: &ArrayRef, kind: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == kind {
        return Ok(array.clone());
    }
    let data = array.to_data();
    let inner: Vec<DataType> = match kind {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            vec![item.data_type().clone()]
        }
        DataType::Map(entries, _) => vec![entries.data_type().clone()],
        DataType::Struct(fields) => fields.iter().map(|f| f.data_type().clone()).collect(),
        _ => Vec::new(),
    };
    let children = std::iter::zip(data.child_data(), &inner)
        .map(|(child, kind)| Ok(retype(&make_array(child.clone()), kind)?.to_data()))
        .collect::<Result<_, ArrowError>>()?;
    Ok(make_array(data.into_builder().data_type(kind.clone()).child_data(children).build()?))
}
