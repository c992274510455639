import{c as o}from"./chunk-3CYRFTZS.js";var t=o(null);export{t as a};
