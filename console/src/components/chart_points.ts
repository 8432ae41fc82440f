// Which values of a chart are drawn as points: a line needs two values beside each other.

/** Return the places of values without a known neighbour; null if there is none. */
export function lonely(values: ArrayLike<number | null | undefined>): number[] | null {
  const isKnown = (at: number): boolean => values[at] !== null && values[at] !== undefined;
  const found = Array.from({ length: values.length }, (_, at) => at).filter((at) => isKnown(at) && !isKnown(at - 1) && !isKnown(at + 1));
  return found.length ? found : null;
}
