"""usage: bombs.py ZIP

Writes tables that are small as files and very large as rows: inputs/testdata/bombs.zip. The rest
of the bombs is made in inputs/bombs_test.go.
"""

import io
import sys
import zipfile

import numpy
import pyarrow
import pyarrow.parquet


def main(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name, data in [
            ("rows.parquet", repeat_rows()),
            ("page.parquet", write_page()),
            ("zeros.arrow", write_zeros()),
        ]:
            out.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)


def repeat_rows():
    """A hundred million rows of one value."""
    part = pyarrow.table({"n": pyarrow.DictionaryArray.from_arrays(
        numpy.zeros(1_000_000, "int32"), pyarrow.array(["a value " * 1000]))})
    out = io.BytesIO()
    with pyarrow.parquet.ParquetWriter(out, part.schema, compression="zstd") as writer:
        whole = pyarrow.concat_tables([part] * 100)
        writer.write_table(whole, row_group_size=100_000_000)
    return out.getvalue()


def write_page():
    """One value of 1 GiB."""
    out = io.BytesIO()
    table = pyarrow.table({"text": pyarrow.array([b"a" * (1 << 30)], "large_binary")})
    pyarrow.parquet.write_table(table, out, compression="zstd", use_dictionary=False, write_statistics=False)
    return out.getvalue()


def write_zeros():
    """A buffer of 1 GiB."""
    out = io.BytesIO()
    table = pyarrow.table({"n": numpy.zeros(1 << 27, "int64")})
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    with pyarrow.ipc.new_file(out, table.schema, options=options) as writer:
        writer.write_table(table)
    return out.getvalue()


if __name__ == "__main__":
    main(sys.argv[1])
