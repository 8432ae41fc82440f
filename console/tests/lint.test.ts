import { ESLint } from "eslint";
import { expect, test } from "vitest";

const eslint = new ESLint();

async function rules(code: string, filePath = "src/views/requests/requests.tsx"): Promise<(string | null)[]> {
  const [result] = await eslint.lintText(code, { filePath });
  return (result?.messages ?? []).map((one) => one.ruleId);
}

test.each([
  "export const a = <p>Some words</p>;",
  'export const a = <p>{"Some words"}</p>;',
  "export const a = (n: number) => <p>{`${n} words`}</p>;",
  'export const a = <button aria-label="Close" />;',
  'export const a = <p dangerouslySetInnerHTML={{ __html: "" }} />;',
  'export const a = (e: Element): void => { e.innerHTML = ""; };',
])("the linter refuses %s", async (code) => {
  expect(await rules(code)).toContain("no-restricted-syntax");
});

test("the linter accepts texts of texts.ts, and names for programs", async () => {
  expect(await rules('declare const texts: { a: string };\nexport const a = <p class="muted">{texts.a}</p>;\n')).toEqual([]);
});

test.each([
  ["blob", "../files/place"],
  ["files", "../blob/place"],
  ["blob", "../across/leases"],
  ["files", "../across/download"],
  ["shared", "../blob/place"],
])("the linter lets no file of protocol/%s import %s", async (folder, from) => {
  const code = `import { a } from "${from}";\nexport const b = a;\n`;
  expect(await rules(code, `src/protocol/${folder}/place.ts`)).toContain("no-restricted-imports");
});

test.each([
  ["blob", "../shared/xml"],
  ["across", "../blob/place"],
])("the linter lets files of protocol/%s import %s", async (folder, from) => {
  const code = `import { a } from "${from}";\nexport const b = a;\n`;
  expect(await rules(code, `src/protocol/${folder}/place.ts`)).not.toContain("no-restricted-imports");
});
