import { describe, expect, it } from "vitest";

import { footerLength, FOOTER_MAX_BYTES, looksLikeParquet, ParquetError, readFooter, TAIL_BYTES } from "../../src/protocol/parquet/footer";
import { Allowance, readStruct, STRUCTS_MAX, ThriftError, TooManyError, VALUES_MAX } from "../../src/protocol/parquet/thrift";
import given from "./parquet.json";

const file = Uint8Array.from(atob(given.file), (char) => char.charCodeAt(0));
const tail = file.subarray(file.length - TAIL_BYTES);
const footer = file.subarray(file.length - TAIL_BYTES - footerLength(tail, file.length), file.length - TAIL_BYTES);

function why(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof ParquetError) return error.why;
    throw error;
  }
  return "none";
}

describe("a Parquet file that pyarrow wrote", () => {
  it("has a footer of which all is read", () => {
    expect(looksLikeParquet(file)).toBe(true);
    expect(readFooter(footer)).toEqual(given.expected);
  });
});

describe("the end of a file", () => {
  const ending = (length: number, magic = "PAR1"): Uint8Array => {
    const bytes = new Uint8Array(TAIL_BYTES);
    new DataView(bytes.buffer).setUint32(0, length, true);
    bytes.set(new TextEncoder().encode(magic), 4);
    return bytes;
  };

  it("says how long the footer is, within bounds", () => {
    expect(footerLength(ending(100), 1000)).toBe(100);
    expect(why(() => footerLength(ending(989), 1000))).toBe("damaged");
    expect(why(() => footerLength(ending(0), 1000))).toBe("damaged");
    expect(why(() => footerLength(ending(FOOTER_MAX_BYTES + 1), 1e9))).toBe("too_large");
    expect(why(() => footerLength(ending(100, "PARE"), 1000))).toBe("encrypted");
    expect(why(() => footerLength(ending(100, "XXXX"), 1000))).toBe("no_parquet");
    expect(why(() => footerLength(new Uint8Array(3), 3))).toBe("no_parquet");
  });
});

describe("bytes that are no footer", () => {
  it("are refused, wherever they are cut", () => {
    const answers = Array.from(footer, (_, length) => why(() => readFooter(footer.subarray(0, length))));
    expect(new Set(answers)).toEqual(new Set(["damaged"]));
  });

  it("end in an answer or a refusal, whichever byte is changed", () => {
    const answers = new Set<string>();
    for (let at = 0; at < footer.length; at += 1) {
      for (const byte of [0x00, 0x7f, 0x9c, 0xff]) {
        const changed = footer.slice();
        changed[at] = byte;
        answers.add(why(() => readFooter(changed)));
      }
    }
    expect(answers).toEqual(new Set(["none", "damaged"]));
  });

  it("cannot claim more than they have", () => {
    expect(() => readStruct(new Uint8Array([0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f]))).toThrow(ThriftError); // a long list
    const endless = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]; // more elements than an array can have
    expect(() => readStruct(new Uint8Array([0x19, 0xf5, ...endless]))).toThrow(ThriftError);
    expect(() => readStruct(new Uint8Array([0x18, 0xff, 0xff, 0xff, 0x7f]))).toThrow(ThriftError); // a long text
    expect(() => readStruct(new Uint8Array(30).fill(0x1c))).toThrow(/nested/); // structs in structs
    expect(() => readStruct(new Uint8Array(30).fill(0xff))).toThrow(ThriftError);
  });

  it("cannot become too many values", () => {
    const count = 3_000_000;
    const bytes = new Uint8Array(count + 10); // a list of empty structs
    bytes.set([0x19, 0xfc, (count & 0x7f) | 0x80, ((count >> 7) & 0x7f) | 0x80, ((count >> 14) & 0x7f) | 0x80, count >> 21]);
    expect(() => readStruct(bytes)).toThrow(/more than/);
  });
});

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >> 7)];
}

/** A footer of some size that begins with these bytes; the others are zero. */
function footerOf(size: number, begin: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(size);
  bytes.set(begin);
  return bytes;
}

/** Lists in a list, each of which claims all bytes that remain. */
function greedyLists(size: number, depth: number): Uint8Array {
  const begin = [0x19];
  for (let level = 0; level < depth; level += 1) begin.push(0xf9, ...varint(size - begin.length - 5));
  return footerOf(size, begin);
}

const SIZES = [1024, 64 * 1024, 200_000, 1024 * 1024, FOOTER_MAX_BYTES];

describe("a footer that claims much", () => {
  /** Read it and return what was taken of the allowance. */
  const taken = (bytes: Uint8Array, refusal: typeof ThriftError): { values: number; structs: number } => {
    const left = new Allowance();
    expect(() => readStruct(bytes, left)).toThrow(refusal);
    return { values: VALUES_MAX - left.values, structs: STRUCTS_MAX - left.structs };
  };

  it.each(SIZES)("of %i bytes claims each value once, however its lists nest", (size) => {
    // The first list may be allowed; the second claims more than the first left, or than there is.
    const { values } = taken(greedyLists(size, 12), ThriftError);
    expect(values).toBeLessThanOrEqual(Math.min(VALUES_MAX, 12 * size));
    if (size > VALUES_MAX) expect(values).toBe(1);
  });

  it("of 200,000 bytes is refused at the second list", () => {
    const { values } = taken(greedyLists(200_000, 12), TooManyError);
    expect(values).toBeLessThanOrEqual(200_000);
  });

  it("of pairs claims two values for each", () => {
    const pairs = footerOf(400_000, [0x1b, ...varint(150_000), 0x33]);
    expect(taken(pairs, TooManyError)).toEqual({ values: 1, structs: 1 });
  });

  it("of 4 MiB of empty structs ends at its first list", () => {
    const structs = footerOf(FOOTER_MAX_BYTES, [0x19, 0xfc, ...varint(FOOTER_MAX_BYTES - 10)]);
    expect(taken(structs, TooManyError)).toEqual({ values: 1, structs: 1 });
    expect(why(() => readFooter(structs))).toBe("too_many");
  });

  it("of 249,000 empty structs ends at the bound of structs", () => {
    const structs = footerOf(249_100, [0x19, 0xfc, ...varint(249_000)]);
    expect(taken(structs, TooManyError)).toEqual({ values: 249_001, structs: STRUCTS_MAX });
    expect(why(() => readFooter(structs))).toBe("too_many");
  });

  it("of 4 MiB of fields ends at the bound of values", () => {
    const fields = new Uint8Array(FOOTER_MAX_BYTES).fill(0x11);
    expect(taken(fields, TooManyError)).toEqual({ values: VALUES_MAX, structs: 1 });
  });

  it("of lists in lists is not read deeper than a footer is", () => {
    const lists = footerOf(1024, [0x19, ...Array<number>(100).fill(0x19)]);
    expect(() => readStruct(lists)).toThrow(/nested/);
  });
});

describe("the compact protocol", () => {
  it("has all types", () => {
    const bytes = [
      0x11, 0x12, // 1 true, 2 false
      0x13, 0xff, // 3: byte -1
      0x15, 0x03, // 4: -2
      0x17, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, // 5: 1.5
      0x18, 0x01, 0x41, // 6: "A"
      0x19, 0x21, 0x01, 0x02, // 7: [true, false]
      0x1b, 0x01, 0x85, 0x01, 0x42, 0x04, // 8: {"B": 2}
      0x05, 0x28, 0x02, // by its own id 20: 1
      0x00,
    ];
    const found = readStruct(new Uint8Array(bytes));
    expect([found.get(1), found.get(2), found.get(3), found.get(4), found.get(5)]).toEqual([true, false, -1, -2, 1.5]);
    expect(found.get(6)).toEqual(new Uint8Array([0x41]));
    expect(found.get(7)).toEqual([true, false]);
    expect(found.get(20)).toBe(1);
  });
});
