// Conditions of $filter, from what a form has. Source: "Querying tables and entities".

import type { EdmType } from "./entities";

export const OPERATORS = ["eq", "ne", "gt", "ge", "lt", "le"] as const;

/** Return a value as $filter writes it. Raises: TypeError if binary data is no base64. */
export function literal(type: EdmType, text: string): string {
  const trimmed = text.trim();
  switch (type) {
    case "String":
      return `'${text.replaceAll("'", "''")}'`;
    case "Int64":
      return `${trimmed}L`;
    case "DateTime":
      return `datetime'${trimmed}'`;
    case "Guid":
      return `guid'${trimmed}'`;
    case "Binary":
      return `X'${hexOf(trimmed)}'`;
    default:
      return trimmed;
  }
}

/** Return a filter with one more condition, all of which must hold. */
export function withCondition(filter: string, name: string, operator: string, type: EdmType, text: string): string {
  const condition = `${name} ${operator} ${literal(type, text)}`;
  if (!filter.trim()) return condition;
  return / or /i.test(filter) ? `(${filter.trim()}) and ${condition}` : `${filter.trim()} and ${condition}`;
}

function hexOf(base64: string): string {
  try {
    return Array.from(atob(base64), (char) => char.charCodeAt(0).toString(16).padStart(2, "0")).join("");
  } catch {
    throw new TypeError("binary data is written as base64");
  }
}
