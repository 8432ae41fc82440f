// The compact protocol of Apache Thrift, read into plain values. Here: bytes to values, bounded, for
// bytes that anybody may have made. Not here: what the fields mean (footer.ts). Source:
// doc/specs/thrift-compact-protocol.md of Apache Thrift.

/** A number beyond 2^53 is rounded. Sets are lists; maps are read past, and are empty lists. */
export type Value = boolean | number | Uint8Array | readonly Value[] | Fields;
/** A struct: its fields by their ids. */
export type Fields = ReadonlyMap<number, Value>;

/** The bytes are no struct. */
export class ThriftError extends Error {}
/** It has more values than this page reads. */
export class TooManyError extends ThriftError {}

/** A footer of Parquet nests nine deep. */
const DEPTH_MAX = 16;
/** So many values are read at most: a value of one byte takes a hundred in memory. */
export const VALUES_MAX = 250_000;
/** A struct takes more memory than other values. */
export const STRUCTS_MAX = 60_000;
const VARINT_BYTES_MAX = 10;
const NO_FIELDS: Fields = new Map();

/** How much is still read of one footer. */
export class Allowance {
  values = VALUES_MAX;
  structs = STRUCTS_MAX;

  /** Raises: TooManyError. */
  takeValues(count: number): void {
    if (count > this.values) throw new TooManyError(`more than ${VALUES_MAX} values`);
    this.values -= count;
  }

  /** Raises: TooManyError. */
  takeStruct(): void {
    if (!this.structs) throw new TooManyError(`more than ${STRUCTS_MAX} structs`);
    this.structs -= 1;
  }
}

const STOP = 0;
const TRUE = 1;
const FALSE = 2;
const BYTE = 3;
const I16 = 4;
const I32 = 5;
const I64 = 6;
const DOUBLE = 7;
const BINARY = 8;
const LIST = 9;
const SET = 10;
const MAP = 11;
const STRUCT = 12;
const UUID = 13;
const UUID_BYTES = 16;

/** Return the struct at the beginning of some bytes. Raises: ThriftError. */
export function readStruct(bytes: Uint8Array, allowance = new Allowance()): Fields {
  return new Reader(bytes, allowance).struct(0);
}

class Reader {
  private at = 0;

  constructor(private readonly bytes: Uint8Array, private readonly left: Allowance) {}

  struct(depth: number): Fields {
    this.left.takeStruct();
    if (this.bytes[this.at] === STOP) {
      this.at += 1;
      return NO_FIELDS;
    }
    const fields = new Map<number, Value>();
    let id = 0;
    for (;;) {
      const head = this.byte();
      const type = head & 0x0f;
      if (type === STOP) return fields;
      const step = head >> 4;
      id = step === 0 ? this.zigzag() : id + step;
      this.left.takeValues(1);
      // A field's type says itself whether a boolean is true.
      fields.set(id, type === TRUE || type === FALSE ? type === TRUE : this.value(type, depth + 1));
    }
  }

  private value(type: number, depth: number): Value {
    if (depth > DEPTH_MAX) throw new ThriftError("nested too deep");
    switch (type) {
      case TRUE:
      case FALSE: return this.byte() === TRUE;
      case BYTE: return (this.byte() << 24) >> 24;
      case I16:
      case I32:
      case I64: return this.zigzag();
      case DOUBLE: return this.double();
      case BINARY: return this.take(this.varint());
      case LIST:
      case SET: return this.list(depth);
      case MAP: return this.map(depth);
      case STRUCT: return this.struct(depth);
      case UUID: return this.take(UUID_BYTES);
      default: throw new ThriftError(`there is no type ${type}`);
    }
  }

  private list(depth: number): Value[] {
    const head = this.byte();
    const size = head >> 4;
    const count = this.counted(size === 15 ? this.varint() : size, 1);
    const values: Value[] = [];
    for (let at = 0; at < count; at += 1) values.push(this.value(head & 0x0f, depth + 1));
    return values;
  }

  private map(depth: number): Value[] {
    const count = this.counted(this.varint(), 2);
    const types = count ? this.byte() : 0;
    for (let at = 0; at < count; at += 1) {
      this.value(types >> 4, depth + 1);
      this.value(types & 0x0f, depth + 1);
    }
    return [];
  }

  // Every element takes a byte at least, so a count beyond the bytes that are left is none. All are
  // taken at once: lists in lists cannot each claim the same.
  private counted(count: number, valuesEach: number): number {
    if (count * valuesEach > this.bytes.length - this.at) throw new ThriftError("a list that is longer than its bytes");
    this.left.takeValues(count * valuesEach);
    return count;
  }

  private byte(): number {
    const found = this.bytes[this.at];
    if (found === undefined) throw new ThriftError("the bytes end too early");
    this.at += 1;
    return found;
  }

  private take(length: number): Uint8Array {
    if (length > this.bytes.length - this.at) throw new ThriftError("the bytes end too early");
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  private double(): number {
    const part = this.take(8);
    return new DataView(part.buffer, part.byteOffset, 8).getFloat64(0, true);
  }

  private varint(): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < VARINT_BYTES_MAX; count += 1) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new ThriftError("a number without an end");
  }

  private zigzag(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}
