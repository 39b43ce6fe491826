import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PDFDocument } from "npm:pdf-lib@1.17.1";

/** Fills the text fields of a PDF form. */
export default async function () {
  const pdf = await PDFDocument.load(await readFile(join(__workspace, args.file)));
  const form = pdf.getForm();
  const known = form.getFields().map((field) => field.getName());
  for (const [name, value] of Object.entries(args.fields as Record<string, string>)) {
    if (!known.includes(name)) throw new Error(`the form has no field ${name}; it has ${known.join(", ")}`);
    form.getTextField(name).setText(value);
  }
  await writeFile(join(__workspace, args.output), await pdf.save());
  return { filled: Object.keys(args.fields).length, of: known.length, file: args.output };
}
