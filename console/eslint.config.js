// Beside the usual rules: every text that people read is in src/texts.ts, nothing writes markup, and
// the Blob and the File service's protocols do not import each other.
import tseslint from "typescript-eslint";

const READ_BY_PEOPLE = "/^(aria-label|aria-description|aria-roledescription|title|placeholder|alt|label|heading|text)$/";
const LETTERS = "/[A-Za-z]{2}/";
const TEXT = "Texts that people read are in src/texts.ts.";
const MARKUP = "Markup made of text would run what clients have stored. Make elements.";
const RESTRICTED = [
  { selector: `JSXText[value=${LETTERS}]`, message: TEXT },
  { selector: `JSXElement > JSXExpressionContainer > Literal[value=${LETTERS}]`, message: TEXT },
  { selector: `JSXElement > JSXExpressionContainer > TemplateLiteral > TemplateElement[value.raw=${LETTERS}]`, message: TEXT },
  { selector: `JSXElement > JSXExpressionContainer > ConditionalExpression > Literal[value=${LETTERS}]`, message: TEXT },
  { selector: `JSXAttribute[name.name=${READ_BY_PEOPLE}] > Literal[value=${LETTERS}]`, message: TEXT },
  { selector: `JSXAttribute[name.name=${READ_BY_PEOPLE}] TemplateElement[value.raw=${LETTERS}]`, message: TEXT },
  { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: MARKUP },
  { selector: "AssignmentExpression > MemberExpression[property.name=/^(innerHTML|outerHTML)$/]", message: MARKUP },
  { selector: "CallExpression[callee.property.name=/^(insertAdjacentHTML|write|writeln)$/][callee.object.name='document']", message: MARKUP },
];

/** A folder of src/protocol and the folders there that it may not import. */
const LAYERS = [
  ["blob", ["files", "across"]],
  ["files", ["blob", "across"]],
  ["shared", ["blob", "files", "across"]],
];

function layer([folder, above]) {
  const message = "What both services use is in protocol/shared; what uses both is in protocol/across.";
  const patterns = [{ regex: `(^|/)(${above.join("|")})/`, message }];
  return { files: [`src/protocol/${folder}/**`], rules: { "no-restricted-imports": ["error", { patterns }] } };
}

export default tseslint.config(
  { ignores: ["node_modules/**"] },
  {
    files: ["**/*.{ts,tsx}"],
    extends: [tseslint.configs.strict, tseslint.configs.stylistic],
    rules: {
      eqeqeq: "error",
      "no-console": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-restricted-syntax": ["error", ...RESTRICTED],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/consistent-type-definitions": ["error", "interface"],
    },
  },
  ...LAYERS.map(layer),
  { files: ["src/texts.ts", "tests/**"], rules: { "no-restricted-syntax": "off" } },
);
